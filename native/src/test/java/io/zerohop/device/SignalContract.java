package io.zerohop.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.WaitException.Reason;
import io.zerohop.device.exchange.SegmentServer;
import io.zerohop.device.exchange.SegmentTable;
import io.zerohop.device.exchange.SocketFolder;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The part of the contract that is about order: signals and streams. Part of {@link
 * DeviceContractTest}, which is what a device's test extends.
 */
public abstract class SignalContract {
  protected static final Duration LIMIT = Duration.ofSeconds(60);
  private static final Duration SHORT = Duration.ofMillis(30);

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
  void aStreamKeepsItsOrder() {
    try (Segment segment = device.allocate(1 << 16);
        CopyStream stream = device.openStream("order")) {
      final long base = segment.address();
      subject.write(base + 4096, new byte[] {1});
      final Signal go = device.signal(segment, 0);
      final Signal done = device.signal(segment, 64);
      final int steps = 200;
      // By a thread of its own: tools that watch a GPU let a launch return when it has ended.
      final CompletableFuture<Void> enqueued =
          CompletableFuture.runAsync(
              () -> {
                stream.await(go, 1, LIMIT);
                for (int i = 0; i < steps; i++) {
                  final CopyBatch step = stream.newBatch();
                  step.add(base + 4096 + i, base + 4096 + i + 1, 1);
                  stream.submit(step);
                }
                stream.raise(done, 1);
              });
      assertThat(subject.read(base + 4096 + 1, steps)).isEqualTo(new byte[steps]);
      assertThat(done.reached(1)).isFalse();
      go.raise(1);
      done.await(1, LIMIT, () -> false);
      enqueued.join();
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
      final CompletableFuture<Void> enqueued =
          CompletableFuture.runAsync(() -> stream.await(never, 1, LIMIT));
      never.abort(9);
      enqueued.join();
      assertWaitFails(Reason.ABORTED, () -> stream.synchronize(LIMIT));
    }
  }

  @Test
  void anInterruptedThreadStopsWaitingAndTheStreamCanBeClosed() {
    try (Segment segment = device.allocate(1);
        CopyStream stream = device.openStream("interrupted")) {
      final Signal go = device.signal(segment, 0);
      final CompletableFuture<Void> enqueued =
          CompletableFuture.runAsync(() -> stream.await(go, 1, LIMIT));
      CompletableFuture.delayedExecutor(
              SHORT.toMillis(), java.util.concurrent.TimeUnit.MILLISECONDS)
          .execute(() -> go.raise(1));
      enqueued.join();
      Thread.currentThread().interrupt();
      try {
        stream.synchronize(LIMIT);
      } catch (final WaitException e) {
        assertThat(e.reason()).isEqualTo(Reason.CANCELLED);
      }
      assertThat(Thread.interrupted()).as("the interrupt stays set").isTrue();
      go.await(1, LIMIT, () -> false);
      stream.synchronize(LIMIT);
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

  protected final ChildJvm child(final String mode, final Path base) throws Exception {
    return ChildJvm.start(
        subject.peerPrefix(),
        ContractPeer.class,
        mode,
        subject.getClass().getName(),
        base.toString());
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
}
