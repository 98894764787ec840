package io.zerohop.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.WaitException.Reason;
import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.exchange.SegmentServer;
import io.zerohop.device.exchange.SegmentTable;
import io.zerohop.device.exchange.SocketFolder;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * What every {@link Device} must do, whatever its memory is. Memory is only touched by way of
 * {@link DeviceUnderTest}.
 */
public abstract class DeviceContractTest {
  protected static final Duration LIMIT = Duration.ofSeconds(60);
  private static final Duration SHORT = Duration.ofMillis(30);
  private static final int GUARD = 128;

  protected final DeviceUnderTest subject = subject();
  protected Device device;
  private Leaks leaks;

  /** The device that the suite runs on. */
  protected abstract DeviceUnderTest subject();

  @BeforeEach
  final void openDevice() {
    subject.open().close(); // Whatever is loaded once and for all is loaded now.
    leaks = new Leaks();
    device = subject.open();
  }

  @AfterEach
  final void everythingWasReturned() {
    assertThat(device.openResources()).isZero();
    device.close();
    leaks.check();
  }

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
        Segment mapped = device.map(owner.export())) {
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
    try (Segment mapped = device.map(owner.export())) {
      owner.close();
      assertThat(subject.read(mapped.address(), bytes.length)).isEqualTo(bytes);
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
  void discardedRangesCanBeReadAndUsedAgain() {
    try (Segment segment = device.allocate(1 << 20)) {
      final byte[] bytes = random(3, 1 << 20);
      subject.write(segment.address(), bytes);
      segment.discard(100, (1 << 19) + 50);
      assertThat(subject.read(segment.address(), 1 << 20)).hasSize(1 << 20);
      final byte[] tail = Arrays.copyOfRange(bytes, (1 << 19) + 150, 1 << 20);
      assertThat(subject.read(segment.address() + (1 << 19) + 150, tail.length)).isEqualTo(tail);
      subject.write(segment.address(), bytes);
      assertThat(subject.read(segment.address(), bytes.length)).isEqualTo(bytes);
      assertThatThrownBy(() -> segment.discard(-1, 10))
          .isInstanceOf(IllegalArgumentException.class);
      assertThatThrownBy(() -> segment.discard(10, 1 << 20))
          .isInstanceOf(IllegalArgumentException.class);
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
  void copiesThatAreNoneAreRefused() {
    try (CopyStream stream = device.openStream("none")) {
      final CopyBatch batch = stream.newBatch();
      assertThatThrownBy(() -> batch.add(4096, 8192, -1))
          .isInstanceOf(IllegalArgumentException.class);
      assertThat(batch.size()).isZero();
    }
  }

  @Test
  void aStreamKeepsItsOrder() {
    try (Segment segment = device.allocate(1 << 16);
        CopyStream stream = device.openStream("order")) {
      final long base = segment.address();
      subject.write(base + 4096, new byte[] {1});
      final Signal go = device.signal(segment, 0);
      final Signal done = device.signal(segment, 64);
      stream.await(go, 1, LIMIT);
      final int steps = 200;
      for (int i = 0; i < steps; i++) {
        final CopyBatch step = stream.newBatch();
        step.add(base + 4096 + i, base + 4096 + i + 1, 1);
        stream.submit(step);
      }
      stream.raise(done, 1);
      assertThat(subject.read(base + 4096 + 1, steps)).isEqualTo(new byte[steps]);
      assertThat(done.reached(1)).isFalse();
      go.raise(1);
      done.await(1, LIMIT, () -> false);
      final byte[] ones = new byte[steps];
      Arrays.fill(ones, (byte) 1);
      assertThat(subject.read(base + 4096 + 1, steps)).isEqualTo(ones);
      stream.synchronize(LIMIT);
    }
  }

  @Test
  void aFailedWaitSkipsWhatIsBehindItAndIsReportedOnce() {
    try (Segment segment = device.allocate(1);
        CopyStream stream = device.openStream("failing")) {
      final Signal never = device.signal(segment, 0);
      final Signal behind = device.signal(segment, 64);
      stream.await(never, 1, SHORT);
      stream.raise(behind, 1);
      assertWaitFails(Reason.TIMEOUT, () -> stream.synchronize(LIMIT));
      assertThat(behind.epoch()).isZero();
      stream.synchronize(LIMIT);
      stream.raise(behind, 2);
      stream.synchronize(LIMIT);
      assertThat(behind.epoch()).isEqualTo(2);
      stream.await(never, 1, LIMIT);
      never.abort(9);
      assertWaitFails(Reason.ABORTED, () -> stream.synchronize(LIMIT));
    }
  }

  @Test
  void synchronizeHasALimitAndCloseAbortsWhatHasNotBegun() {
    try (Segment segment = device.allocate(1)) {
      final Signal never = device.signal(segment, 0);
      final Signal behind = device.signal(segment, 64);
      final CopyStream stream = device.openStream("stuck");
      stream.await(never, 1, LIMIT);
      stream.raise(behind, 1);
      assertWaitFails(Reason.TIMEOUT, () -> stream.synchronize(SHORT));
      stream.close();
      assertThat(behind.epoch()).isZero();
      assertThatThrownBy(() -> stream.raise(behind, 1)).isInstanceOf(IllegalStateException.class);
    }
  }

  @Test
  void waitsEndByTimeOutAbortAndCancellation() {
    try (Segment segment = device.allocate(1)) {
      final Signal signal = device.signal(segment, 0);
      assertWaitFails(Reason.TIMEOUT, () -> signal.await(1, SHORT, () -> false));
      assertWaitFails(Reason.TIMEOUT, () -> signal.await(1, Duration.ZERO, () -> false));
      final AtomicInteger asked = new AtomicInteger();
      assertWaitFails(
          Reason.CANCELLED, () -> signal.await(1, LIMIT, () -> asked.incrementAndGet() == 3));
      final CompletableFuture<Void> waiter =
          CompletableFuture.runAsync(
              () -> assertWaitFails(Reason.ABORTED, () -> signal.await(1, LIMIT, () -> false)));
      signal.abort(42);
      waiter.join();
      assertThat(signal.aborted()).isEqualTo(42);
      assertWaitFails(Reason.ABORTED, () -> signal.await(1, LIMIT, () -> false));
      signal.abort(0);
      signal.raise(1);
      signal.await(1, LIMIT, () -> false);
    }
  }

  @Test
  void epochsCompareCyclicallyAndOnlyGrow() {
    try (Segment segment = device.allocate(1)) {
      final Signal signal = device.signal(segment, 8);
      signal.raise(Integer.MAX_VALUE);
      signal.raise(5);
      assertThat(signal.epoch()).isEqualTo(Integer.MAX_VALUE);
      signal.raise(Integer.MIN_VALUE + 2);
      assertThat(signal.epoch()).isEqualTo(Integer.MIN_VALUE + 2);
      assertThat(signal.reached(Integer.MAX_VALUE)).isTrue();
      assertThat(signal.reached(Integer.MIN_VALUE + 3)).isFalse();
      signal.raise(-1);
      signal.raise(1);
      assertThat(signal.reached(-1)).isTrue();
      assertThat(signal.epoch()).isEqualTo(1);
    }
  }

  @Test
  void signalsLieAlignedInsideTheirSegment() {
    try (Segment segment = device.allocate(1)) {
      for (final long offset : new long[] {-8, 4, segment.bytes() - 4, segment.bytes()}) {
        assertThatThrownBy(() -> device.signal(segment, offset))
            .isInstanceOf(IllegalArgumentException.class);
      }
      assertThat(device.signal(segment, segment.bytes() - Signal.BYTES).epoch()).isZero();
    }
  }

  @Test
  void aRaiseMakesWhatWasWrittenBeforeVisible() {
    try (Segment segment = device.allocate(1 << 16);
        CopyStream stream = device.openStream("writer")) {
      final Signal ready = device.signal(segment, 0);
      final Signal taken = device.signal(segment, 64);
      final AtomicBoolean stop = new AtomicBoolean();
      final CompletableFuture<Void> reader =
          CompletableFuture.runAsync(
              () -> {
                for (int i = 1; i <= 500; i++) {
                  ready.await(i, LIMIT, stop::get);
                  final byte[] expected = new byte[1000];
                  Arrays.fill(expected, (byte) i);
                  assertThat(subject.read(segment.address() + 8192, 1000)).isEqualTo(expected);
                  taken.raise(i);
                }
              });
      final CopyBatch batch = stream.newBatch();
      final byte[] bytes = new byte[1000];
      for (int i = 1; i <= 500 && !reader.isDone(); i++) {
        Arrays.fill(bytes, (byte) i);
        subject.write(segment.address() + 4096, bytes);
        batch.clear();
        batch.add(segment.address() + 4096, segment.address() + 8192, 1000);
        stream.submit(batch);
        stream.raise(ready, i);
        stream.await(taken, i, LIMIT);
        stream.synchronize(LIMIT);
      }
      stop.set(reader.isCompletedExceptionally());
      reader.join();
    }
  }

  @Test
  void signalsCrossProcesses(@TempDir final Path scratch) throws Exception {
    final Path base = scratch.resolve("s");
    try (Segment segment = device.allocate(1);
        SocketFolder folder = SocketFolder.open(base, "app");
        SegmentServer server =
            new SegmentServer(
                folder,
                "parent",
                SegmentTable.SECRET,
                new SegmentTable().add(ContractPeer.SEGMENT_ID, segment),
                SegmentServer.Limits.DEFAULT)) {
      final Signal ping = device.signal(segment, ContractPeer.PING_OFFSET);
      final Signal pong = device.signal(segment, ContractPeer.PONG_OFFSET);
      ping.raise(ContractPeer.firstEpoch());
      pong.raise(ContractPeer.firstEpoch());
      server.start();
      try (ChildJvm child = child("echo", base)) {
        for (int i = 1; i <= ContractPeer.ROUNDS; i++) {
          ping.raise(ContractPeer.firstEpoch() + i);
          pong.await(ContractPeer.firstEpoch() + i, LIMIT, () -> false);
        }
        assertThat(child.line()).isEqualTo("done");
        assertThat(child.exitCode()).isZero();
      }
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
          Segment mapped = device.map(link.fetch(ContractPeer.SEGMENT_ID, LIMIT))) {
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

  private ChildJvm child(final String mode, final Path base) throws Exception {
    return ChildJvm.start(
        List.of(), ContractPeer.class, mode, subject.getClass().getName(), base.toString());
  }

  @Test
  void mappingTenThousandTimesLeavesNothing() {
    try (Segment segment = device.allocate(1)) {
      final Leaks before = new Leaks();
      for (int i = 0; i < 10_000; i++) {
        device.map(segment.export()).close();
      }
      before.check();
    }
  }

  private static void assertWaitFails(final Reason reason, final Runnable wait) {
    assertThatThrownBy(wait::run)
        .isInstanceOfSatisfying(
            WaitException.class,
            e -> {
              assertThat(e.reason()).isEqualTo(reason);
              assertThat(e.category()).isEqualTo(ZerohopException.Category.RETRY);
            });
  }

  private static byte[] random(final long seed, final int length) {
    final byte[] bytes = new byte[length];
    new Random(seed).nextBytes(bytes);
    return bytes;
  }
}
