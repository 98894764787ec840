package io.zerohop.shuffle.transport.ucx.connect;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.remote.memory.Slab;
import io.zerohop.shuffle.transport.remote.reader.MessageReceiver;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.reader.Gets;
import io.zerohop.shuffle.transport.ucx.reader.UcxPeer;
import io.zerohop.shuffle.transport.ucx.wire.GetQuestions;
import io.zerohop.shuffle.transport.ucx.wire.TestTarget;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;

/**
 * Reads of one peer's test range, each waited for, a limited time. For one thread; the peer and the
 * slabs are the caller's.
 */
final class TestReads {
  private final UcxPeer peer;
  private final MessageReceiver arrivals;
  private final Duration limit;

  /**
   * @param arrivals where messages come to
   * @param limit of each read
   */
  TestReads(final UcxPeer peer, final MessageReceiver arrivals, final Duration limit) {
    this.peer = peer;
    this.arrivals = arrivals;
    this.limit = limit;
  }

  /** Whose memory is read, for messages. */
  String peer() {
    return peer.name();
  }

  /** The longest time that one read may take. */
  Duration limit() {
    return limit;
  }

  /** The clock by which they take their time. */
  Clock clock() {
    return peer.clock();
  }

  /** What one of the two ways does, once. */
  interface Read {
    void run() throws ExecutionException, TimeoutException, InterruptedException;
  }

  /** Reads so many bytes from its beginning by a get. */
  void get(final TestTarget target, final Slab slab, final long bytes)
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
    await(end);
  }

  /** Reads so many bytes by messages. */
  void send(final Slab slab, final long bytes)
      throws ExecutionException, TimeoutException, InterruptedException {
    final MessageReceiver.Waiting all = arrivals.expect(slab, bytes, peer::progress);
    try {
      all.total(await(peer.ask(GetQuestions.test(all.id(), bytes))).getLong());
      await(all.complete());
    } finally {
      all.end();
    }
  }

  /** Events that the peer's UCX has handled so far. */
  long events() throws ExecutionException, TimeoutException, InterruptedException {
    final ByteBuffer answer = await(peer.ask(GetQuestions.events()));
    return answer.getLong();
  }

  private <T> T await(final CompletableFuture<T> end)
      throws ExecutionException, TimeoutException, InterruptedException {
    return peer.clock().get(end, limit);
  }
}
