package io.zerohop.shuffle.transport.ucx;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Measures at first contact what a peer's bytes can come by. Where anything that one-sided gets
 * need is missing UCX emulates them and says nothing: many times slower, and the owner's CPU reads
 * the memory, also for a reader that has died since. So both ways are timed, and gets are taken
 * only where both nodes have an adapter for them and they are faster.
 *
 * @param getRate bytes a second by gets
 * @param sendRate bytes a second by messages
 * @param rdma whether both nodes have an adapter
 */
record SelfTest(double getRate, double sendRate, boolean rdma) {
  private static final long FIRST_BYTES = 4 << 10;

  /** Whether messages are to be taken. */
  boolean byMessage() {
    return !rdma || sendRate > getRate;
  }

  /**
   * Reads the peer's test range both ways.
   *
   * @throws UcxException if either does not work in time
   */
  static SelfTest run(
      final RemotePeer peer,
      final TestTarget target,
      final Slabs slabs,
      final Arrivals arrivals,
      final Duration limit) {
    final Slabs.Slab slab = slabs.take(target.bytes());
    try {
      get(peer, target, slab, FIRST_BYTES, limit); // Connects.
      final long begin = System.nanoTime();
      get(peer, target, slab, target.bytes(), limit);
      final long between = System.nanoTime();
      send(peer, target, slab, arrivals, limit);
      final long end = System.nanoTime();
      return new SelfTest(
          1e9 * target.bytes() / (between - begin),
          1e9 * target.bytes() / (end - between),
          target.rdma() && RdmaDevices.any());
    } catch (final ExecutionException | TimeoutException e) {
      throw new UcxException(
          "a test read of executor " + peer.name() + "'s memory failed: " + e.getMessage(), e);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new UcxException("interrupted while memory of a peer was read for a test", e);
    } finally {
      slab.release();
    }
  }

  /** What a peer lets others read, and whether its node has an adapter. */
  record TestTarget(boolean rdma, long address, long bytes, byte[] key) {}

  private static void get(
      final RemotePeer peer,
      final TestTarget target,
      final Slabs.Slab slab,
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
      final RemotePeer peer,
      final TestTarget target,
      final Slabs.Slab slab,
      final Arrivals arrivals,
      final Duration limit)
      throws ExecutionException, TimeoutException, InterruptedException {
    final Arrivals.Waiting all = arrivals.expect(slab, target.bytes(), peer::progress);
    try {
      final ByteBuffer question =
          ByteBuffer.allocate(1 + Long.BYTES).put(Wire.TEST).putLong(all.id()).flip();
      final ByteBuffer answer = peer.ask(question).get(limit.toMillis(), TimeUnit.MILLISECONDS);
      all.total(answer.getLong());
      all.complete().get(limit.toMillis(), TimeUnit.MILLISECONDS);
    } finally {
      all.end();
    }
  }

  /** One line for the log: how fast, and what is missing if it is not the best. */
  String describe(final boolean messages, final boolean gpu) {
    final String rates =
        String.format(
            messages
                ? "messages, %1$.1f GB/s (gets: %2$.1f GB/s)"
                : "one-sided gets, %2$.1f GB/s (messages: %1$.1f GB/s)",
            sendRate / 1e9,
            getRate / 1e9);
    final List<String> missing = new ArrayList<>();
    if (!rdma) {
      missing.add(
          "this node or the other has no RDMA device ("
              + RdmaDevices.FOLDER
              + " is empty), so gets are emulated");
    }
    if (gpu) {
      missing.add("blocks in GPU memory go over pinned host memory at both ends");
    }
    return missing.isEmpty() ? rates : rates + "; not zero-copy: " + String.join(", ", missing);
  }
}
