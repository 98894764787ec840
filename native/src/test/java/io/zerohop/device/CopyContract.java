package io.zerohop.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.host.HostDevice;
import java.util.Arrays;
import java.util.Random;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;

/** The part of the contract that is about what copies move. Part of {@link DeviceContractTest}. */
public abstract class CopyContract extends SignalContract {
  private static final int GUARD = 128;

  @Test
  void copiesAtAllAlignments() {
    final int[] lengths = {
      0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 255, 1000, 4097
    };
    final int area = 4 * 4096;
    final byte[] source = random(4, area);
    try (Segment segment = device.allocate(2L * area);
        CopyStream stream = device.openStream("alignments")) {
      subject.write(segment.address(), source);
      final CopyBatch batch = stream.newBatch();
      for (int from = 0; from < 64; from++) {
        for (int to = 0; to < 64; to++) {
          final int length = lengths[(from * 64 + to) % lengths.length];
          checkCopy(stream, batch, segment, source, area, from, to, length);
        }
      }
    }
  }

  @Test
  void copiesMegabytesAtOddAlignments() {
    final int area = 6 << 20;
    final byte[] source = random(5, area);
    try (Segment segment = device.allocate(2L * area);
        CopyStream stream = device.openStream("megabytes")) {
      subject.write(segment.address(), source);
      final CopyBatch batch = stream.newBatch();
      for (final int length : new int[] {65_537, (1 << 20) + 3, (5 << 20) + 11}) {
        for (final int from : new int[] {0, 1, 8, 31, 63}) {
          checkCopy(stream, batch, segment, source, area, from, from * 7 % 64, length);
        }
      }
    }
  }

  /** Poisons the destination, copies, and compares every byte, also those around it. */
  private void checkCopy(
      final CopyStream stream,
      final CopyBatch batch,
      final Segment segment,
      final byte[] source,
      final int area,
      final int from,
      final int to,
      final int length) {
    final byte[] expected = new byte[to + length + 2 * GUARD];
    Arrays.fill(expected, (byte) 0xA5);
    subject.write(segment.address() + area, expected);
    batch.clear();
    batch.add(segment.address() + from, segment.address() + area + GUARD + to, length);
    assertThat(batch.size()).isEqualTo(length == 0 ? 0 : 1);
    assertThat(batch.bytes()).isEqualTo(length);
    stream.submit(batch);
    stream.synchronize(LIMIT);
    System.arraycopy(source, from, expected, GUARD + to, length);
    final byte[] actual = subject.read(segment.address() + area, expected.length);
    if (!Arrays.equals(actual, expected)) {
      throw new AssertionError(
          "copy of " + length + " bytes from alignment " + from + " to " + to + " went wrong");
    }
  }

  @Test
  void oneBatchCarriesManyCopies() {
    final int pieces = 20_000;
    final Random random = new Random(6);
    final int area = pieces * 40;
    final byte[] source = random(7, area);
    final byte[] expected = new byte[area];
    try (Segment segment = device.allocate(2L * area);
        CopyStream stream = device.openStream("many")) {
      subject.write(segment.address(), source);
      final CopyBatch batch = stream.newBatch();
      int to = 0;
      for (int i = 0; i < pieces; i++) {
        final int length = random.nextInt(40);
        final int from = random.nextInt(area - length);
        batch.add(segment.address() + from, segment.address() + area + to, length);
        System.arraycopy(source, from, expected, to, length);
        to += length;
      }
      assertThat(batch.bytes()).isEqualTo(to);
      stream.submit(batch);
      stream.synchronize(LIMIT);
      assertThat(subject.read(segment.address() + area, area)).isEqualTo(expected);
    }
  }

  @Test
  void copiesReachHostSegmentsThatArePinned() {
    final byte[] bytes = random(9, 300_000);
    try (HostDevice host = new HostDevice();
        Segment shared = host.allocate(1 << 20);
        Segment segment = device.allocate(1 << 20)) {
      final UnsafeBuffer view = new UnsafeBuffer(shared.address(), 1 << 20);
      view.putBytes(77, bytes);
      try (HostBuffer pinned = device.pin(shared.address(), shared.bytes());
          CopyStream stream = device.openStream("pinned")) {
        assertThat(pinned.address()).isEqualTo(shared.address());
        assertThat(pinned.bytes()).isEqualTo(shared.bytes());
        final CopyBatch batch = stream.newBatch();
        batch.add(shared.address() + 77, segment.address() + 3, bytes.length);
        stream.submit(batch);
        final CopyBatch back = stream.newBatch();
        back.add(segment.address() + 3, shared.address() + (1 << 19), bytes.length);
        stream.submit(back);
        stream.synchronize(LIMIT);
      }
      assertThat(subject.read(segment.address() + 3, bytes.length)).isEqualTo(bytes);
      final byte[] copied = new byte[bytes.length];
      view.getBytes(1 << 19, copied);
      assertThat(copied).isEqualTo(bytes);
      // Its bytes stay when it is not pinned any more, and it can be pinned again.
      device.pin(shared.address(), shared.bytes()).close();
      view.getBytes(77, copied);
      assertThat(copied).isEqualTo(bytes);
    }
  }

  @Test
  void copiesReachHostBuffers() {
    final byte[] bytes = random(8, 100_000);
    try (Segment segment = device.allocate(1 << 20);
        HostBuffer buffer = device.hostBuffer(bytes.length);
        CopyStream stream = device.openStream("host")) {
      assertThat(buffer.bytes()).isGreaterThanOrEqualTo(bytes.length);
      final UnsafeBuffer host = new UnsafeBuffer(buffer.address(), bytes.length);
      assertThat(host.getByte(bytes.length - 1)).isZero();
      host.putBytes(0, bytes);
      final CopyBatch batch = stream.newBatch();
      batch.add(buffer.address(), segment.address() + 3, bytes.length);
      stream.submit(batch);
      stream.synchronize(LIMIT);
      assertThat(subject.read(segment.address() + 3, bytes.length)).isEqualTo(bytes);
      host.setMemory(0, bytes.length, (byte) 0);
      batch.clear();
      for (int at = 0; at < bytes.length; at += 1_000) {
        batch.add(segment.address() + 3 + at, buffer.address() + at, 1_000);
      }
      stream.submit(batch);
      stream.synchronize(LIMIT);
      final byte[] back = new byte[bytes.length];
      host.getBytes(0, back);
      assertThat(back).isEqualTo(bytes);
    }
  }

  @Test
  void copiesThatAreNoneAreRefused() {
    try (CopyStream stream = device.openStream("none")) {
      final CopyBatch batch = stream.newBatch();
      assertThatThrownBy(() -> batch.add(4096, 8192, -1))
          .isInstanceOf(IllegalArgumentException.class);
      assertThat(batch.size()).isZero();
    }
  }

  static byte[] random(final long seed, final int length) {
    final byte[] bytes = new byte[length];
    new Random(seed).nextBytes(bytes);
    return bytes;
  }
}
