package io.zerohop.shuffle.transport.ucx.connect;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.memory.TestRange;
import io.zerohop.shuffle.transport.ucx.reader.Gets;
import io.zerohop.shuffle.transport.ucx.reader.UcxPeer;
import io.zerohop.shuffle.transport.ucx.wire.GetQuestions;
import io.zerohop.shuffle.transport.ucx.wire.GetQuestions.TestTarget;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;

/**
 * Reads of one peer's test range, each waited for, a limited time. For one thread; the peer and the
 * destinations are the caller's.
 */
final class TestReads {
  private final UcxPeer peer;
  private final long incarnation;
  private final int largest;
  private final Duration limit;

  /**
   * @param incarnation of the peer, which says what its range has in it
   * @param largest bytes of the largest read
   * @param limit of each read
   */
  TestReads(final UcxPeer peer, final long incarnation, final int largest, final Duration limit) {
    this.peer = peer;
    this.incarnation = incarnation;
    this.largest = largest;
    this.limit = limit;
  }

  /** Returns the owner of the memory, for messages. */
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

  /**
   * Reads so many bytes from its beginning by a get, and compares them.
   *
   * @throws ExecutionException if the get fails, or brings other bytes than the peer has there
   */
  void compare(final TestTarget target, final TestRange.Destination to, final long bytes)
      throws ExecutionException, TimeoutException, InterruptedException {
    to.prepare(bytes);
    get(target, to, bytes);
    final long wrong = to.firstWrong(incarnation, bytes);
    if (wrong >= 0) {
      throw new ExecutionException(
          new UcxException(
              "a get of " + bytes + " bytes brought another byte " + wrong + " than there is",
              null));
    }
  }

  /** Reads so many bytes from its beginning by a get. */
  void get(final TestTarget target, final TestRange.Destination to, final long bytes)
      throws ExecutionException, TimeoutException, InterruptedException {
    final CompletableFuture<Void> end = new CompletableFuture<>();
    peer.gets()
        .submit(
            new Gets.Get(
                target.key(),
                target.address(),
                to.slab(),
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

  /** Returns the bytes of the largest read. */
  int largest() {
    return largest;
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
