package io.zerohop.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.exchange.SegmentTable;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.host.HostDevice;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * What every {@link Device} must do, whatever its memory is. Memory is only touched by way of
 * {@link DeviceUnderTest}.
 */
public abstract class DeviceContractTest extends SignalContract {
  private static final int GUARD = 128;

  @Test
  void allocatesWholeGranulesOfZeroes() {
    try (Segment segment = device.allocate(1)) {
      assertThat(segment.bytes()).isEqualTo(device.granularity());
      assertThat(segment.owned()).isTrue();
      assertThat(subject.read(segment.address(), (int) segment.bytes()))
          .isEqualTo(new byte[(int) segment.bytes()]);
    }
  }

  @Test
  void refusesSizesThatAreNone() {
    assertThatThrownBy(() -> device.allocate(0)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> device.allocate(-1)).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void lackOfMemoryIsTyped() {
    for (final long bytes : new long[] {1L << 45, Long.MAX_VALUE}) {
      assertThatThrownBy(() -> device.allocate(bytes))
          .isInstanceOfSatisfying(
              DeviceMemoryException.class,
              e -> {
                assertThat(e.category()).isEqualTo(ZerohopException.Category.RETRY);
                assertThat(e.requestedBytes()).isEqualTo(bytes);
              });
    }
  }

  @Test
  void mappedMemoryIsTheOwnersMemory() {
    try (Segment owner = device.allocate(1 << 20);
        Segment mapped = device.map(owner.export(), "a peer")) {
      final byte[] bytes = random(1, 1 << 20);
      subject.write(owner.address(), bytes);
      assertThat(mapped.owned()).isFalse();
      assertThat(mapped.bytes()).isEqualTo(owner.bytes());
      assertThat(subject.read(mapped.address(), bytes.length)).isEqualTo(bytes);
      assertThatThrownBy(mapped::export).isInstanceOf(IllegalStateException.class);
    }
  }

  @Test
  void mappedMemoryOutlivesItsOwner() {
    final Segment owner = device.allocate(1 << 16);
    final byte[] bytes = random(2, 1 << 16);
    subject.write(owner.address(), bytes);
    try (Segment mapped = device.map(owner.export(), "a peer")) {
      owner.close();
      assertThat(subject.read(mapped.address(), bytes.length)).isEqualTo(bytes);
    }
  }

  @Test
  void columnsOfBitsAndOffsetsArePutTogether() {
    final Random random = new Random(11);
    try (Segment segment = device.allocate(1 << 22);
        CopyStream stream = device.openStream("splice")) {
      for (int round = 0; round < 12; round++) {
        final SpliceRound pieces = new SpliceRound(random, round < 6 ? 70 : 40_000);
        subject.write(segment.address(), pieces.sources());
        final SpliceBatch batch = stream.newSplice();
        assertThat(batch.isEmpty()).isTrue();
        pieces.fill(batch, segment.address(), segment.address() + (2 << 20));
        stream.submit(batch);
        batch.clear();
        stream.synchronize(LIMIT);
        assertThat(subject.read(segment.address() + (2 << 20), pieces.expected().length))
            .isEqualTo(pieces.expected());
      }
    }
  }

  @Test
  void rowsHashToTheSameNumbersEverywhere() {
    final Random random = new Random(12);
    try (Segment segment = device.allocate(16 << 20);
        HostBuffer results = device.hostBuffer(1 << 16);
        CopyStream stream = device.openStream("row hashes")) {
      for (int round = 0; round < 24; round++) {
        final RowHashRound columns =
            new RowHashRound(random, 1 + random.nextInt(round < 20 ? 500 : 9_000));
        subject.write(segment.address(), columns.bytes());
        final RowHashBatch batch = stream.newRowHash();
        assertThat(batch.isEmpty()).isTrue();
        final long[] expected = new long[5];
        for (int i = 0; i < expected.length; i++) {
          // The first table is whole, the others any rows of it.
          final int from = i == 0 ? 0 : random.nextInt(columns.rows()) / 32 * 32;
          final int count = i == 0 ? columns.rows() : random.nextInt(columns.rows() - from + 1);
          columns.fill(batch, segment.address(), from, count, i);
          expected[i] = columns.expected(from, count);
        }
        stream.submit(batch, results.address());
        stream.synchronize(LIMIT);
        assertThat(sums(batch, results, expected.length)).isEqualTo(expected);
        batch.clear();
        assertThat(batch.isEmpty()).isTrue();
      }
    }
  }

  /** The sums of a batch's results by slot. */
  private static long[] sums(final RowHashBatch batch, final HostBuffer results, final int slots) {
    final UnsafeBuffer words = new UnsafeBuffer(results.address(), Long.BYTES * batch.results());
    final long[] sums = new long[slots];
    for (int i = 0; i < batch.results(); i++) {
      sums[batch.slot(i)] += words.getLong(Long.BYTES * i);
    }
    return sums;
  }

  @Test
  void manyTablesAndColumnsAreHashedInOneSubmission() {
    final int tables = 3_000;
    final int columns =
        300; // More than a thread block keeps at hand, and than a ring has room for.
    final byte[] bytes = random(9, 1 << 12);
    try (Segment segment = device.allocate(1 << 16);
        HostBuffer results = device.hostBuffer(Long.BYTES * tables);
        CopyStream stream = device.openStream("many tables")) {
      subject.write(segment.address(), bytes);
      final UnsafeBuffer values = new UnsafeBuffer(bytes);
      final RowHashBatch batch = stream.newRowHash();
      final long[] expected = new long[tables];
      for (int table = 0; table < tables; table++) {
        batch.beginTable(1, columns, table);
        long hash = RowHashBatch.ROW;
        for (int column = 0; column < columns; column++) {
          final int at = (table + column) % 512 * Long.BYTES;
          batch.addFixed(Long.BYTES, segment.address() + at, 0);
          hash =
              HashMix.combine(
                  hash, HashMix.combine(RowHashBatch.FIXED + Long.BYTES, values.getLong(at)));
        }
        expected[table] = hash;
      }
      assertThat(batch.results()).isEqualTo(tables);
      stream.submit(batch, results.address());
      stream.synchronize(LIMIT);
      assertThat(sums(batch, results, tables)).isEqualTo(expected);
    }
  }

  @Test
  void columnsThatCannotBeHashedAreRefused() {
    try (CopyStream stream = device.openStream("refused")) {
      final RowHashBatch batch = stream.newRowHash();
      assertThatThrownBy(() -> batch.addFixed(4, 0, 0)).isInstanceOf(IllegalStateException.class);
      batch.beginTable(1, 1, 0);
      assertThatThrownBy(() -> batch.addFixed(3, 0, 0))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> batch.addFixed(8, 4, 0))
          .isInstanceOf(IllegalArgumentException.class);
      for (int depth = 0; depth < RowHashBatch.MOST_DEPTH; depth++) {
        batch.beginStruct(1, 0);
      }
      assertThatThrownBy(() -> batch.beginList(0, 0)).isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(() -> stream.submit(batch, 0)).isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(() -> batch.beginTable(1, 1, 0)).isInstanceOf(IllegalStateException.class);
      batch.clear();
      batch.beginTable(0, 1, 0);
      batch.addFixed(4, 0, 0);
      assertThat(batch.results()).isZero();
      stream.submit(batch, 0);
      stream.synchronize(LIMIT);
    }
  }

  @Test
  void aStreamOfTheThreadIsWaitedForAndClosedByAnyOther() {
    try (Segment segment = device.allocate(1 << 22)) {
      final byte[] bytes = random(3, 1 << 20);
      subject.write(segment.address(), bytes);
      final CopyStream stream = device.openThreadStream("of this thread");
      final CopyBatch batch = stream.newBatch();
      for (int i = 0; i < 3; i++) {
        batch.clear();
        batch.add(
            segment.address() + ((long) i << 20), segment.address() + (i + 1L << 20), 1 << 20);
        stream.submit(batch);
      }
      CompletableFuture.runAsync(() -> stream.synchronize(LIMIT)).join();
      assertThat(subject.read(segment.address() + (3L << 20), bytes.length)).isEqualTo(bytes);
      batch.clear();
      batch.add(segment.address() + (1L << 20), segment.address(), 1 << 20);
      stream.submit(batch);
      CompletableFuture.runAsync(stream::close).join();
      assertThat(subject.read(segment.address(), bytes.length)).isEqualTo(bytes);
    }
  }

  @Test
  void closingTwiceIsClosingOnce() {
    final Segment segment = device.allocate(1);
    final SegmentHandle handle = segment.export();
    handle.close();
    handle.close();
    assertThatThrownBy(handle::fd).isInstanceOf(IllegalStateException.class);
    segment.close();
    segment.close();
    assertThatThrownBy(segment::export).isInstanceOf(IllegalStateException.class);
    final CopyStream stream = device.openStream("twice");
    stream.close();
    stream.close();
  }

  @Test
  void aDeviceNamesWhatIsLeftOpen() {
    try (Segment segment = device.allocate(1);
        CopyStream stream = device.openStream("forgotten")) {
      assertThat(device.openResources()).isEqualTo(2);
      assertThatThrownBy(device::close)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("forgotten")
          .hasMessageContaining("segment");
      assertThat(segment.bytes()).isPositive();
      stream.synchronize(LIMIT);
    }
  }

  @Test
  void whatPeersMayOnlyReadIsTheOwnersToWrite() {
    try (Segment owner = device.allocate(1 << 20, PeerAccess.READ);
        Segment mapped = device.map(owner.export(), "a peer", PeerAccess.READ)) {
      for (int seed = 3; seed < 5; seed++) {
        final byte[] bytes = random(seed, 1 << 20);
        subject.write(owner.address(), bytes);
        assertThat(subject.read(mapped.address(), bytes.length)).isEqualTo(bytes);
      }
    }
  }

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

  @Test
  void memoryOfAKilledExporterStaysReadable(@TempDir final Path scratch) throws Exception {
    final Path base = scratch.resolve("s");
    try (SocketFolder folder = SocketFolder.open(base, "app");
        ChildJvm child = child("export", base)) {
      assertThat(child.line()).isEqualTo("ready");
      try (PeerLink link =
              PeerLink.connect(
                  folder.socket("child"), "parent", "child", SegmentTable.SECRET, LIMIT);
          Segment mapped = device.map(link.fetch(ContractPeer.SEGMENT_ID, LIMIT), "a peer")) {
        final CompletableFuture<Void> ended = new CompletableFuture<>();
        link.onClosed(() -> ended.complete(null));
        assertThat(link.alive()).isTrue();
        child.kill();
        ended.join();
        assertThat(link.alive()).isFalse();
        assertThat(subject.read(mapped.address(), ContractPeer.PATTERN_BYTES))
            .isEqualTo(ContractPeer.pattern());
      }
      folder.sweep();
    }
  }

  @Test
  void mappingTenThousandTimesLeavesNothing() {
    try (Segment segment = device.allocate(1)) {
      final Leaks before = new Leaks();
      for (int i = 0; i < 10_000; i++) {
        device.map(segment.export(), "a peer").close();
      }
      before.check();
    }
  }

  private static byte[] random(final long seed, final int length) {
    final byte[] bytes = new byte[length];
    new Random(seed).nextBytes(bytes);
    return bytes;
  }
}
