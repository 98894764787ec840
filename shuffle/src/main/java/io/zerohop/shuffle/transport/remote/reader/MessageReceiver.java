package io.zerohop.shuffle.transport.remote.reader;

import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.transport.remote.carrier.Carrier.Arrivals;
import io.zerohop.shuffle.transport.remote.memory.Slabs.Slab;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Transfers that wait for messages, by number. These begin at random and are never used again, so
 * that what comes late, or from somebody else, finds nothing. Thread safe.
 */
public final class MessageReceiver implements Arrivals {
  private final Map<Long, Waiting> waiting = new ConcurrentHashMap<>();
  private final AtomicLong next = new AtomicLong(new SecureRandom().nextLong());

  /**
   * Expects the messages of one transfer.
   *
   * @param slab where they go; held until the transfer was ended and nothing is received any more
   * @param bytes how many bytes of it they may fill
   * @param progress run at each message that was received
   */
  public Waiting expect(final Slab slab, final long bytes, final Runnable progress) {
    slab.retain();
    final Waiting transfer = new Waiting(next.incrementAndGet(), slab, bytes, progress);
    waiting.put(transfer.id, transfer);
    return transfer;
  }

  @Override
  public long arriving(final long id, final long offset, final long bytes, final Runnable stop) {
    final Waiting transfer = waiting.get(id);
    return transfer == null ? 0 : transfer.begin(offset, bytes, stop);
  }

  @Override
  public void arrived(
      final long id, final long offset, final long bytes, final @Nullable String failure) {
    final Waiting transfer = waiting.get(id);
    if (transfer != null) {
      transfer.received(bytes, failure);
    }
  }

  @Override
  public void damaged(final long id, final long offset, final long bytes) {
    final Waiting transfer = waiting.get(id);
    if (transfer != null) {
      transfer.damage(offset, bytes);
      transfer.received(bytes, null);
    }
  }

  @Override
  public void lost(final long id, final String why) {
    final Waiting transfer = waiting.get(id);
    if (transfer != null) {
      transfer.lost(why);
    }
  }

  /** Transfers that wait, or that something is still received for. */
  int size() {
    return waiting.size();
  }

  /** One transfer's memory and what has come of it. */
  public final class Waiting {
    private final long id;
    private final Slab slab;
    private final long bytes;
    private final Runnable progress;
    private final CompletableFuture<Void> complete = new CompletableFuture<>();
    private long total = -1;
    private long arrived;
    private int receiving;
    private boolean ended;
    private @Nullable String failure;
    private final List<long[]> damaged = new ArrayList<>();

    /** What stops the messages that have begun; most have ended. */
    private final List<Runnable> stops = new ArrayList<>();

    private Waiting(final long id, final Slab slab, final long bytes, final Runnable progress) {
      this.id = id;
      this.slab = slab;
      this.bytes = bytes;
      this.progress = progress;
    }

    /** The number that messages carry. */
    public long id() {
      return id;
    }

    /** Completes when everything is there, or exceptionally when a message failed. */
    public CompletableFuture<Void> complete() {
      return complete;
    }

    /** The owner says how many bytes it has sent. */
    public void total(final long sent) {
      synchronized (this) {
        total = sent;
      }
      check();
    }

    private void lost(final String why) {
      synchronized (this) {
        failure = failure == null ? why : failure;
      }
      check();
    }

    private synchronized void damage(final long offset, final long length) {
      damaged.add(new long[] {offset, offset + length});
    }

    /** Returns whether something in a range was damaged on its way. */
    synchronized boolean isDamaged(final long begin, final long end) {
      return damaged.stream().anyMatch(range -> begin < range[1] && range[0] < end);
    }

    private synchronized long begin(final long offset, final long length, final Runnable stop) {
      if (ended || offset < 0 || length <= 0 || length > bytes - offset) {
        return 0;
      }
      receiving++;
      stops.add(stop);
      return slab.address() + offset;
    }

    private void received(final long length, final @Nullable String failed) {
      final boolean last;
      synchronized (this) {
        receiving--;
        if (failed == null) {
          arrived += length;
        } else if (failure == null) {
          failure = failed;
        }
        last = ended && receiving == 0;
      }
      progress.run();
      check();
      if (last) {
        letGo();
      }
    }

    private void check() {
      final String failed;
      final boolean all;
      synchronized (this) {
        failed = failure;
        all = failure == null && total >= 0 && arrived >= total && receiving == 0;
      }
      if (failed != null) {
        complete.completeExceptionally(
            new ZerohopException(ZerohopException.Category.RETRY, "a message failed: " + failed));
      } else if (all) {
        complete.complete(null);
      }
    }

    /**
     * Nothing more is taken; the memory stays until nothing is being received in it, which is
     * stopped where the carrier can do so. Idempotent.
     */
    public void end() {
      final List<Runnable> begun;
      final boolean idle;
      synchronized (this) {
        if (ended) {
          return;
        }
        ended = true;
        idle = receiving == 0;
        begun = List.copyOf(stops);
        stops.clear();
      }
      if (idle) {
        letGo();
      } else {
        begun.forEach(Runnable::run);
      }
    }

    private void letGo() {
      waiting.remove(id);
      slab.release();
    }
  }
}
