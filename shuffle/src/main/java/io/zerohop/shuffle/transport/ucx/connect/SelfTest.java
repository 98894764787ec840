package io.zerohop.shuffle.transport.ucx.connect;

import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.remote.memory.Slab;
import io.zerohop.shuffle.transport.ucx.connect.NodeRates.Way;
import io.zerohop.shuffle.transport.ucx.engine.RdmaDevices;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.memory.TestRange;
import io.zerohop.shuffle.transport.ucx.wire.TestTarget;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What first contact with a peer has shown: each way that its bytes could come by is tried, and
 * gets are taken where they are one-sided.
 *
 * @param rdma whether both nodes have an adapter
 * @param gets from host memory to host memory
 * @param getRate bytes a second by those; 0 if there are none
 * @param sendRate bytes a second by messages; 0 if that was not measured, since gets are one-sided
 * @param gpuGets from GPU to GPU
 * @param gpuRate bytes a second by those; 0 if they are out of the question
 */
record SelfTest(
    boolean rdma, GetKind gets, double getRate, double sendRate, GetKind gpuGets, double gpuRate) {
  private static final Logger LOG = LoggerFactory.getLogger(SelfTest.class);

  /** Bytes of a message that shows that messages come. */
  private static final long MESSAGE_BYTES = 64 << 10;

  /**
   * What GPUs without an adapter between them have at least, by NVLink or PCIe; where gets are
   * emulated they were seen to have 0.5 to 3.2 GB/s.
   */
  private static final double LEAST_LINK_RATE = 8e9;

  /** What is tried with. The slabs stay the caller's. */
  record Trial(TestReads reads, Slab slab, Slab gpuSlab, NodeRates rates, String node) {}

  /** What can be got of a peer, and whether both nodes have an adapter. */
  record Targets(boolean rdma, TestTarget host, TestTarget gpu) {}

  /** Whether messages are to be taken. */
  boolean byMessage() {
    return !rdma || gets != GetKind.ONE_SIDED && (gets != GetKind.UNKNOWN || sendRate > getRate);
  }

  /**
   * Whether blocks in the peer's GPU memory are to be got into that of this GPU as they are. Not if
   * that is emulated, however fast: the owner's UCX would read the memory, also of a lease that has
   * ended.
   */
  boolean direct() {
    final boolean faster = gpuRate > (byMessage() ? sendRate : getRate);
    return switch (gpuGets) {
      case ONE_SIDED -> faster;
      case UNKNOWN -> faster && (rdma || gpuRate > LEAST_LINK_RATE);
      case NONE, EMULATED, FAILED -> false;
    };
  }

  /**
   * Reads the peer's test range each way, and that in GPU memory if both have one; what becomes of
   * the latter keeps nobody from the rest.
   *
   * @throws UcxException if one of the others does not work in time
   */
  static SelfTest run(final Trial trial, final Targets targets) {
    try {
      final TestReads reads = trial.reads();
      final GetKind gets = GetKind.of(reads, targets.host(), trial.slab());
      reads.send(trial.slab(), MESSAGE_BYTES);
      final double getRate = gets == GetKind.NONE ? 0 : getRate(trial, targets.host());
      final double sendRate =
          targets.rdma() && gets == GetKind.ONE_SIDED
              ? 0
              : rate(trial, Way.SEND, () -> reads.send(trial.slab(), TestRange.BYTES));
      final GetKind gpuGets = gpuGets(trial, targets.gpu());
      final double gpuRate =
          gpuGets == GetKind.NONE || gpuGets == GetKind.FAILED ? 0 : gpuRate(trial, targets.gpu());
      return new SelfTest(targets.rdma(), gets, getRate, sendRate, gpuGets, gpuRate);
    } catch (final TimeoutException e) {
      throw new UcxException(
          "a test read of executor "
              + trial.reads().peer()
              + "'s memory did not end within "
              + trial.reads().limit().toMillis()
              + " ms",
          e);
    } catch (final ExecutionException e) {
      throw new UcxException(
          "a test read of executor " + trial.reads().peer() + "'s memory failed: " + e.getMessage(),
          e);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new UcxException("interrupted while memory of a peer was read for a test", e);
    }
  }

  private static double rate(final Trial trial, final Way way, final TestReads.Read read)
      throws ExecutionException, TimeoutException, InterruptedException {
    return trial.rates().of(trial.node(), way, read);
  }

  private static double getRate(final Trial trial, final TestTarget target)
      throws ExecutionException, TimeoutException, InterruptedException {
    return rate(trial, Way.GET, () -> trial.reads().get(target, trial.slab(), TestRange.BYTES));
  }

  private static double gpuRate(final Trial trial, final TestTarget target)
      throws ExecutionException, TimeoutException, InterruptedException {
    return rate(
        trial, Way.GPU_GET, () -> trial.reads().get(target, trial.gpuSlab(), TestRange.BYTES));
  }

  private static GetKind gpuGets(final Trial trial, final TestTarget target)
      throws InterruptedException {
    if (trial.gpuSlab() == null) {
      return GetKind.NONE;
    }
    try {
      return GetKind.of(trial.reads(), target, trial.gpuSlab());
    } catch (final ExecutionException | TimeoutException e) {
      ShuffleCode.GPU_GET_FAILED.warn(
          LOG,
          "GPU memory of executor {} cannot be got: {}",
          trial.reads().peer(),
          String.valueOf(e));
      return GetKind.FAILED;
    }
  }

  /** One line for the log: which way, how fast, and what is missing if it is not the best. */
  String describe(final boolean messages, final GpuReach gpu) {
    final List<String> missing = new ArrayList<>();
    if (!rdma) {
      missing.add(
          ShuffleCode.NO_RDMA_DEVICE.marked(
              "this node or the other has no RDMA device ("
                  + RdmaDevices.FOLDER
                  + " is empty), so "
                  + (gets == GetKind.NONE ? "there are no gets" : "gets are emulated")));
    } else if (gets == GetKind.EMULATED) {
      missing.add(
          ShuffleCode.GETS_EMULATED.marked(
              "libucx emulates gets although both nodes have an RDMA device (a libucx without verbs?"
                  + " UCX_LOG_LEVEL=info UCX_PROTO_INFO=y say what it chooses)"));
    }
    final String host =
        rates(messages)
            + (missing.isEmpty() ? "" : "; not zero-copy: " + String.join(", ", missing));
    return gpu == GpuReach.NO_GPU ? host : host + "; GPU memory: " + gpu.describe(gpuGets, gpuRate);
  }

  private String rates(final boolean messages) {
    if (!messages) {
      return String.format(Locale.ROOT, "%s, %.1f GB/s", gets.words(), getRate / 1e9);
    }
    final String sent =
        sendRate == 0
            ? "messages"
            : String.format(Locale.ROOT, "messages, %.1f GB/s", sendRate / 1e9);
    return gets == GetKind.NONE
        ? sent
        : String.format(Locale.ROOT, "%s (%s: %.1f GB/s)", sent, gets.words(), getRate / 1e9);
  }
}
