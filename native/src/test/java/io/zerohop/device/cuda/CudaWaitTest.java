package io.zerohop.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.Segment;
import io.zerohop.device.Signal;
import io.zerohop.device.Signal.SignalEpoch;
import io.zerohop.device.WaitException;
import io.zerohop.device.host.HostDevice;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;

/** Waits on the GPU end, whatever holds them up, and say what they waited for. */
@EnabledIf(value = "io.zerohop.device.cuda.Gpus#one", disabledReason = "no GPU here")
class CudaWaitTest {
  private static final Duration LIMIT = Duration.ofSeconds(60);
  private static final int EVERY_MULTIPROCESSOR = 10_000;

  private final CudaUnderTest memory = new CudaUnderTest();

  @Test
  void anAbortEndsAWait() {
    try (CudaDevice device = new CudaDevice(0, EVERY_MULTIPROCESSOR);
        Segment segment = device.allocate(1);
        CopyStream stream = device.openStream("aborted")) {
      final Signal never = device.signal(segment, 0);
      for (int round = 0; round < 20; round++) {
        submitFullOfWaits(stream, segment, never, 1, LIMIT);
        never.abort(7);
        assertThatThrownBy(() -> stream.synchronize(LIMIT))
            .isInstanceOfSatisfying(
                WaitException.class,
                e -> assertThat(e.reason()).isEqualTo(WaitException.Reason.ABORTED))
            .hasMessageContaining("epoch 1 of signal")
            .hasMessageContaining("segment zerohop-");
        never.abort(0);
      }
    }
  }

  /** The host raises without a kernel, so it needs no room on a GPU that is full of waits. */
  @Test
  void aGpuFullOfWaitsCanStillBeReleased() {
    try (CudaDevice device = new CudaDevice(0, EVERY_MULTIPROCESSOR);
        Segment segment = device.allocate(1);
        CopyStream waiting = device.openStream("waiting");
        CopyStream raising = device.openStream("raising")) {
      final Signal gate = device.signal(segment, 0);
      final byte[] bytes = {1, 2, 3};
      for (int epoch = 1; epoch <= 20; epoch++) {
        submitFullOfWaits(waiting, segment, gate, epoch, LIMIT);
        memory.write(segment.address() + 4096, bytes);
        if (epoch % 2 == 0) {
          gate.raise(epoch);
        } else {
          raising.raise(gate, epoch);
          raising.synchronize(LIMIT);
        }
        waiting.synchronize(LIMIT);
      }
    }
  }

  /** Otherwise they would go on for an hour, and the close would give up on them and say so. */
  @Test
  void closingAStreamEndsItsWaits() {
    try (CudaDevice device = new CudaDevice(0, EVERY_MULTIPROCESSOR);
        Segment segment = device.allocate(1)) {
      final Signal never = device.signal(segment, 0);
      final CopyStream stream = device.openStream("closed");
      submitFullOfWaits(stream, segment, never, 1, Duration.ofHours(1));
      stream.close();
      assertThat(never.epoch()).isZero();
    }
  }

  /** As the ready word of a map output does, which lies in the catalog. */
  @Test
  void aWordInHostMemoryIsRaisedAndAwaitedByStreams() {
    try (HostDevice host = new HostDevice();
        Segment shared = host.allocate(1);
        CudaDevice device = new CudaDevice(0, 24);
        HostBuffer pinned = device.pin(shared.address(), shared.bytes());
        Segment segment = device.allocate(1);
        CopyStream raising = device.openThreadStream("raising");
        CopyStream waiting = device.openStream("waiting")) {
      final Signal onHost = host.signal(shared, 64);
      final Signal word = device.pinnedSignal(onHost, pinned.address() + 64);
      final Signal hold = device.signal(segment, 0);
      for (int epoch = 1; epoch <= 50; epoch++) {
        memory.write(segment.address() + 4096, new byte[] {(byte) epoch});
        raising.await(hold, epoch, LIMIT);
        final CopyBatch first = raising.newBatch();
        first.add(segment.address() + 4096, segment.address() + 8192, 1);
        raising.submit(first);
        raising.raise(word, epoch);
        waiting.await(word, epoch, LIMIT);
        final CopyBatch second = waiting.newBatch();
        second.add(segment.address() + 8192, segment.address() + 12_288, 1);
        waiting.submit(second);
        assertThat(onHost.reached(epoch)).isFalse();
        hold.raise(epoch);
        onHost.await(epoch, LIMIT, () -> false);
        waiting.synchronize(LIMIT);
        assertThat(memory.read(segment.address() + 12_288, 1)).containsExactly(epoch);
        raising.synchronize(LIMIT);
      }
      waiting.await(word, 51, LIMIT);
      onHost.abort(3);
      assertThatThrownBy(() -> waiting.synchronize(LIMIT))
          .isInstanceOfSatisfying(
              WaitException.class,
              e -> assertThat(e.reason()).isEqualTo(WaitException.Reason.ABORTED));
    }
  }

  @Test
  void nothingBehindAFailedWaitHappens() {
    try (CudaDevice device = new CudaDevice(0, 24);
        Segment segment = device.allocate(300 << 20);
        CopyStream stream = device.openStream("failed")) {
      final Signal never = device.signal(segment, 0);
      final Signal behind = device.signal(segment, 64);
      memory.write(segment.address() + 4096, new byte[] {42});
      stream.await(never, 1, Duration.ofMillis(20));
      final CopyBatch batch = stream.newBatch();
      batch.add(segment.address() + 4096, segment.address() + 8192, 1);
      batch.add(segment.address() + 4096, segment.address() + (140 << 20), 130 << 20);
      stream.submit(batch);
      stream.raise(behind, 1);
      assertThatThrownBy(() -> stream.synchronize(LIMIT))
          .isInstanceOf(WaitException.class)
          .hasMessageContaining("was not raised within PT0.02S");
      assertThat(memory.read(segment.address() + 8192, 1)).containsExactly(0);
      assertThat(memory.read(segment.address() + (140 << 20), 1)).containsExactly(0);
      assertThat(behind.epoch()).isZero();
      batch.clear();
      batch.add(segment.address() + 4096, segment.address() + 8192, 1);
      stream.submit(batch);
      stream.synchronize(LIMIT);
      assertThat(memory.read(segment.address() + 8192, 1)).containsExactly(42);
    }
  }

  /** Enough copies for a thread block on each SM, all of which wait first. */
  private static void submitFullOfWaits(
      final CopyStream stream,
      final Segment segment,
      final Signal gate,
      final int epoch,
      final Duration limit) {
    final CopyBatch batch = stream.newBatch();
    for (int copy = 0; copy < 20_000; copy++) {
      batch.add(segment.address() + (1 << 20), segment.address() + 65_536 + copy * 16L, 16);
    }
    stream.submit(batch, List.of(new SignalEpoch(gate, epoch)), List.of(), limit);
  }
}
