package io.zerohop.shuffle.transport.ucx.connect;

import io.zerohop.shuffle.transport.ucx.engine.RdmaDevices;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.memory.Slab;
import io.zerohop.shuffle.transport.ucx.memory.Slabs;
import io.zerohop.shuffle.transport.ucx.memory.TestRange;
import io.zerohop.shuffle.transport.ucx.reader.Gets;
import io.zerohop.shuffle.transport.ucx.reader.MessageReceiver;
import io.zerohop.shuffle.transport.ucx.reader.RemotePeer;
import io.zerohop.shuffle.transport.ucx.wire.Questions;
import io.zerohop.shuffle.transport.ucx.wire.TestTarget;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Measures at first contact what a peer's bytes can come by. Where anything that one-sided gets
 * need is missing UCX emulates them and says nothing: many times slower, and the owner's CPU reads
 * the memory, also for a reader that has died since. So both ways are timed, and gets are taken
 * only where both nodes have an adapter for them and they are faster.
 *
 * @param getRate bytes a second by gets; 0 if one of the two answers none
 * @param sendRate bytes a second by messages
 * @param rdma whether both nodes have an adapter
 * @param gpuRate bytes a second by gets from GPU to GPU; 0 if there cannot be any, negative if they
 *     failed
 */
record SelfTest(double getRate, double sendRate, boolean rdma, double gpuRate) {
  private static final Logger LOG = LoggerFactory.getLogger(SelfTest.class);
  private static final long FIRST_BYTES = 4 << 10;

  /**
   * Where the rate decides, the best of so many counts: in the first one connections are made and
   * memory is mapped. Elsewhere one is enough for the log.
   */
  private static final int TIMES = 2;

  /**
   * What GPUs without an adapter between them have at least, by NVLink or PCIe; where gets are
   * emulated they were seen to have 0.5 to 3.2 GB/s.
   */
  private static final double LEAST_LINK_RATE = 8e9;

  /** Whether messages are to be taken. */
  boolean byMessage() {
    return !rdma || sendRate > getRate;
  }

  /**
   * Whether blocks in the peer's GPU memory are to be got into that of this GPU as they are. Not if
   * that is emulated, however fast: the owner's UCX would read the memory, also of a lease that has
   * ended.
   */
  boolean direct() {
    return gpuRate > sendRate && (rdma || gpuRate > LEAST_LINK_RATE);
  }

  /**
   * Reads the peer's test range both ways, and that in GPU memory if both have one; what becomes of
   * the latter keeps nobody from the rest.
   *
   * @param gpuSlab as much of this GPU's memory; null if there is none
   * @throws UcxException if either does not work in time
   */
  static SelfTest run(
      final RemotePeer peer,
      final Targets targets,
      final Slabs slabs,
      final Slab gpuSlab,
      final MessageReceiver arrivals,
      final Duration limit) {
    final TestTarget target = targets.host();
    final Slab slab = slabs.take(TestRange.BYTES);
    final boolean rdma = targets.rdma() && RdmaDevices.any();
    final boolean onGpu = gpuSlab != null && targets.gpu().bytes() > 0;
    final int times = rdma || onGpu ? TIMES : 1;
    try {
      final double getRate = target.bytes() == 0 ? 0 : getRate(peer, target, slab, times, limit);
      final Transfer send = () -> send(peer, slab, arrivals, limit);
      return new SelfTest(
          getRate,
          rate(TestRange.BYTES, times, send),
          rdma,
          onGpu ? gpuRate(peer, targets.gpu(), gpuSlab, limit) : 0);
    } catch (final TimeoutException e) {
      throw new UcxException(
          "a test read of executor "
              + peer.name()
              + "'s memory did not end within "
              + limit.toMillis()
              + " ms",
          e);
    } catch (final ExecutionException e) {
      throw new UcxException(
          "a test read of executor " + peer.name() + "'s memory failed: " + e.getMessage(), e);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new UcxException("interrupted while memory of a peer was read for a test", e);
    } finally {
      slab.release();
    }
  }

  /** What can be got of a peer, and whether its node has an adapter. */
  record Targets(boolean rdma, TestTarget host, TestTarget gpu) {}

  private static double gpuRate(
      final RemotePeer peer, final TestTarget target, final Slab slab, final Duration limit)
      throws InterruptedException {
    try {
      return getRate(peer, target, slab, TIMES, limit);
    } catch (final ExecutionException | TimeoutException e) {
      LOG.warn("GPU memory of executor {} cannot be got: {}", peer.name(), String.valueOf(e));
      return -1;
    }
  }

  private static double getRate(
      final RemotePeer peer,
      final TestTarget target,
      final Slab slab,
      final int times,
      final Duration limit)
      throws ExecutionException, TimeoutException, InterruptedException {
    get(peer, target, slab, FIRST_BYTES, limit); // Connects.
    return rate(target.bytes(), times, () -> get(peer, target, slab, target.bytes(), limit));
  }

  /** Moves the bytes once; waits for that. */
  private interface Transfer {
    void run() throws ExecutionException, TimeoutException, InterruptedException;
  }

  private static double rate(final long bytes, final int times, final Transfer transfer)
      throws ExecutionException, TimeoutException, InterruptedException {
    long least = Long.MAX_VALUE;
    for (int i = 0; i < times; i++) {
      final long begin = System.nanoTime();
      transfer.run();
      least = Math.min(least, System.nanoTime() - begin);
    }
    return 1e9 * bytes / least;
  }

  private static void get(
      final RemotePeer peer,
      final TestTarget target,
      final Slab slab,
      final long bytes,
      final Duration limit)
      throws ExecutionException, TimeoutException, InterruptedException {
    final CompletableFuture<Void> end = new CompletableFuture<>();
    peer.gets()
        .submit(
            new Gets.Get(
                target.key(),
                target.address(),
                slab,
                0,
                bytes,
                () -> true,
                failure -> {
                  if (failure == null) {
                    end.complete(null);
                  } else {
                    end.completeExceptionally(new UcxException(failure, null));
                  }
                }));
    end.get(limit.toMillis(), TimeUnit.MILLISECONDS);
  }

  private static void send(
      final RemotePeer peer, final Slab slab, final MessageReceiver arrivals, final Duration limit)
      throws ExecutionException, TimeoutException, InterruptedException {
    final MessageReceiver.Waiting all = arrivals.expect(slab, TestRange.BYTES, peer::progress);
    try {
      final ByteBuffer question = Questions.test(all.id());
      final ByteBuffer answer = peer.ask(question).get(limit.toMillis(), TimeUnit.MILLISECONDS);
      all.total(answer.getLong());
      all.complete().get(limit.toMillis(), TimeUnit.MILLISECONDS);
    } finally {
      all.end();
    }
  }

  /** One line for the log: how fast, and what is missing if it is not the best. */
  String describe(final boolean messages, final GpuReach gpu) {
    final String rates = rates(messages);
    final List<String> missing = new ArrayList<>();
    if (!rdma) {
      missing.add(
          "this node or the other has no RDMA device ("
              + RdmaDevices.FOLDER
              + " is empty), so "
              + (getRate == 0 ? "there are no gets" : "gets are emulated"));
    }
    final String host =
        missing.isEmpty() ? rates : rates + "; not zero-copy: " + String.join(", ", missing);
    return gpu == GpuReach.NO_GPU ? host : host + "; GPU memory: " + gpu.describe(gpuRate);
  }

  private String rates(final boolean messages) {
    if (getRate == 0) {
      return String.format("messages, %.1f GB/s", sendRate / 1e9);
    }
    return String.format(
        messages
            ? "messages, %1$.1f GB/s (gets: %2$.1f GB/s)"
            : "one-sided gets, %2$.1f GB/s (messages: %1$.1f GB/s)",
        sendRate / 1e9,
        getRate / 1e9);
  }
}
