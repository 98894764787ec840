package io.zerohop.shuffle.transport.remote;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.transport.Transport.Sink;
import io.zerohop.shuffle.transport.remote.Carrier.Arrivals;
import io.zerohop.shuffle.transport.remote.Slabs.Slab;
import io.zerohop.shuffle.transport.remote.Wire.Questions;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Windows that their owners send here, by the number that messages carry. Numbers begin at random
 * and are never used again, so that what comes late, or from somebody else, finds nothing. Thread
 * safe.
 */
public final class MessageReceiver implements Arrivals {
  private final Map<Long, SentTransfer> waiting = new ConcurrentHashMap<>();
  private final AtomicLong next = new AtomicLong(new SecureRandom().nextLong());

  /**
   * Begins to fetch blocks that their owner sends to the host, where it copies what lies in GPU
   * memory before.
   *
   * @param blocks each reported to the sink once
   * @param slabs what they are received in
   * @param executor makes steps that take some time
   */
  public void fetch(
      final RemotePeer peer,
      final List<Block> blocks,
      final Sink sink,
      final Slabs slabs,
      final Executor executor) {
    RemoteTransfer.startEach(blocks, some -> new SentTransfer(peer, some, sink, slabs, executor));
  }

  @Override
  public long arriving(final long id, final long offset, final long bytes, final Runnable stop) {
    final SentTransfer transfer = waiting.get(id);
    return transfer == null ? 0 : transfer.begin(offset, bytes, stop);
  }

  @Override
  public void arrived(
      final long id, final long offset, final long bytes, final @Nullable String failure) {
    final SentTransfer transfer = waiting.get(id);
    if (transfer != null) {
      transfer.received(bytes, failure);
    }
  }

  @Override
  public void damaged(final long id, final long offset, final long bytes) {
    final SentTransfer transfer = waiting.get(id);
    if (transfer != null) {
      transfer.damage(offset, bytes);
      transfer.received(bytes, null);
    }
  }

  @Override
  public void lost(final long id, final String why) {
    final SentTransfer transfer = waiting.get(id);
    if (transfer != null) {
      transfer.lost(why);
    }
  }

  /** Transfers that wait, or that something is still received for. */
  int size() {
    return waiting.size();
  }

  /**
   * One window that is sent. It waits for messages from when the places of its blocks are known;
   * its memory stays until nothing is being received in it any more.
   */
  private final class SentTransfer extends RemoteTransfer {
    private final long id = next.incrementAndGet();

    /** Completes when everything is there, or exceptionally when a message failed. */
    private final CompletableFuture<Void> complete = new CompletableFuture<>();

    /** Where messages go; absent before it waits for any. */
    @GuardedBy("this")
    private @Nullable Slab slab;

    /** How many bytes of it they may fill. */
    @GuardedBy("this")
    private long bytes;

    /** Bytes that the owner has sent, as it says; negative before it does. */
    @GuardedBy("this")
    private long total = -1;

    @GuardedBy("this")
    private long arrived;

    /** Messages that have begun and not ended. */
    @GuardedBy("this")
    private int receiving;

    /** Whether nothing more is taken. */
    @GuardedBy("this")
    private boolean stopped;

    @GuardedBy("this")
    private @Nullable String failure;

    /** Places that were damaged on their way: begin and end. */
    @GuardedBy("this")
    private final List<long[]> damaged = new ArrayList<>();

    /** What stops the messages that have begun; most have ended. */
    @GuardedBy("this")
    private final List<Runnable> stops = new ArrayList<>();

    SentTransfer(
        final RemotePeer peer,
        final List<Block> blocks,
        final Sink sink,
        final Slabs slabs,
        final Executor executor) {
      super(peer, blocks, sink, slabs, executor);
    }

    @Override
    protected void receive() {
      final ReceiveBuffers to = receiveInto(ReceiveBuffers.onHost(extents(), slabs()));
      if (to == null) {
        return;
      }
      try {
        if (!expect(to)) {
          return;
        }
      } finally {
        to.release();
      }
      ask(Questions.send(lease(), id))
          .thenAccept(answer -> sent(answer.getLong()))
          .thenCompose(sent -> complete)
          .thenRunAsync(this::succeed, executor())
          .exceptionally(this::failed);
    }

    /** Takes messages from now on, and holds the memory; false if this has ended. */
    private synchronized boolean expect(final ReceiveBuffers to) {
      if (hasEnded()) {
        return false;
      }
      bytes = to.host().bytes();
      slab = to.hostSlab();
      slab.retain();
      waiting.put(id, this);
      return true;
    }

    /** The owner says how many bytes it has sent. */
    private void sent(final long sent) {
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

    /** Returns where a message goes; 0 if it is not taken. */
    private synchronized long begin(final long offset, final long length, final Runnable stop) {
      if (slab == null || stopped || offset < 0 || length <= 0 || length > bytes - offset) {
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
        last = stopped && receiving == 0;
      }
      progress();
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

    /** Messages that have begun are stopped where the carrier can do so. */
    @Override
    protected void ending() {
      final List<Runnable> begun;
      final boolean idle;
      synchronized (this) {
        stopped = true;
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
      final Slab held;
      synchronized (this) {
        held = slab;
      }
      waiting.remove(id);
      if (held != null) {
        held.release();
      }
    }

    @Override
    protected synchronized boolean isDamaged(final int block, final ReceiveBuffers received) {
      for (int extent = extents().begin(block); extent < extents().end(block); extent++) {
        final long begin = received.host().place(extent);
        final long end = begin + extents().length(extent);
        for (final long[] range : damaged) {
          if (begin < range[1] && range[0] < end) {
            return true;
          }
        }
      }
      return false;
    }
  }
}
