package io.zerohop.shuffle.transport.ucx.connect;

import io.zerohop.device.Message;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.ucx.engine.RdmaDevices;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.memory.TestRange;
import io.zerohop.shuffle.transport.ucx.wire.TestTarget;
import java.util.Locale;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The result of first contact with a peer: gets are enabled if they are one-sided.
 *
 * @param rdma whether both nodes have an adapter
 * @param host gets from host memory to host memory
 * @param hostRate bytes a second by those
 * @param gpu gets from GPU to GPU
 * @param gpuRate bytes a second by those; 0 if they are out of the question
 */
record SelfTest(boolean rdma, GetKind host, double hostRate, GetKind gpu, double gpuRate) {
  private static final Logger LOG = LoggerFactory.getLogger(SelfTest.class);

  /** The source and the targets of a trial; they stay the caller's, and {@code gpu} may be null. */
  record Trial(TestReads reads, TestRange.Destination host, TestRange.Destination gpu) {}

  /** The test of gets from a peer, and whether both nodes have an adapter. */
  record Targets(boolean rdma, TestTarget host, TestTarget gpu) {}

  /**
   * Returns whether host memory is got: where an adapter does it, and a busy owner is no evidence.
   */
  boolean takesHost() {
    return rdma && (host == GetKind.ONE_SIDED || host == GetKind.UNKNOWN);
  }

  /**
   * Returns whether GPU memory is got into that of this GPU. Not if that is emulated, however fast:
   * the owner's UCX would read the memory, also of a lease that has ended.
   */
  boolean takesGpu() {
    return gpu == GetKind.ONE_SIDED || rdma && gpu == GetKind.UNKNOWN;
  }

  /**
   * Reads the peer's test range, and that in GPU memory if both have one; what becomes of the
   * latter keeps nobody from the rest.
   *
   * @throws UcxException if the former does not work in time
   */
  static SelfTest run(final Trial trial, final Targets targets) {
    final TestReads reads = trial.reads();
    try {
      final GetKind host = GetKind.of(reads, targets.host(), trial.host());
      final double hostRate = rate(reads, targets.host(), trial.host());
      final GetKind gpu = gpuGets(trial, targets.gpu());
      final double gpuRate =
          gpu == GetKind.NONE || gpu == GetKind.FAILED
              ? 0
              : rate(reads, targets.gpu(), trial.gpu());
      return new SelfTest(targets.rdma(), host, hostRate, gpu, gpuRate);
    } catch (final TimeoutException e) {
      throw new UcxException(
          Message.of(
                  "a test read of an executor's memory did not end within "
                      + reads.limit().toMillis()
                      + " ms")
              .at("executor " + reads.peer()),
          e);
    } catch (final ExecutionException e) {
      throw new UcxException(
          Message.of("a test read of an executor's memory failed")
              .at("executor " + reads.peer())
              .because(e.getCause()),
          e);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new UcxException("interrupted while memory of a peer was read for a test", e);
    }
  }

  /** By the second read of the whole range: in the first one memory is mapped. */
  private static double rate(
      final TestReads reads, final TestTarget target, final TestRange.Destination to)
      throws ExecutionException, TimeoutException, InterruptedException {
    final long begin = reads.clock().nanos();
    reads.get(target, to, TestRange.BYTES);
    return 1e9 * TestRange.BYTES / Math.max(1, reads.clock().since(begin));
  }

  private static GetKind gpuGets(final Trial trial, final TestTarget target)
      throws InterruptedException {
    if (trial.gpu() == null) {
      return GetKind.NONE;
    }
    try {
      return GetKind.of(trial.reads(), target, trial.gpu());
    } catch (final ExecutionException | TimeoutException e) {
      ShuffleCode.GPU_GET_FAILED
          .says("a test read of an executor's GPU memory failed; its GPU blocks are sent")
          .at("executor " + trial.reads().peer())
          .because(e)
          .warn(LOG);
      return GetKind.FAILED;
    }
  }

  /**
   * One line for the log: what is got, how fast, and what is missing if something is not.
   *
   * @param got whether host memory is
   */
  String describe(final boolean got, final GpuReach reach) {
    final String near =
        got
            ? String.format(Locale.ROOT, "%s, %.1f GB/s", host.words(), hostRate / 1e9)
            : "host memory: sent, since " + obstacle();
    return reach == GpuReach.NO_GPU ? near : near + "; GPU memory: " + reach.describe(gpu, gpuRate);
  }

  private String obstacle() {
    return rdma
        ? ShuffleCode.GETS_EMULATED
            .says("libucx emulates gets although both nodes have an RDMA device")
            .remedy("see what it chooses by UCX_LOG_LEVEL=info UCX_PROTO_INFO=y")
            .text()
        : ShuffleCode.NO_RDMA_DEVICE
            .says("this node or the other has no RDMA device")
            .because(RdmaDevices.FOLDER + " is empty")
            .text();
  }
}
