package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.ucx.UcxPeer.Gets;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.memory.GetQuestions;
import io.zerohop.shuffle.transport.ucx.memory.GetQuestions.TestTarget;
import io.zerohop.shuffle.transport.ucx.memory.TestRange;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
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

  /**
   * The side that does the work of gets from a peer. UCX does not say: where anything that
   * one-sided gets need is missing it emulates them by messages, which are slower, and with which
   * the owner's CPU reads the memory, also for a reader that has died since. So the peer counts the
   * events that its UCX handles: each emulated get is one at least, a one-sided one is none.
   */
  enum GetKind {
    /** There is nothing to get. */
    NONE("no gets"),
    /** An adapter or a link does it, and the owner's CPU takes no part. */
    ONE_SIDED("one-sided gets"),
    /** The owner's UCX does it. */
    EMULATED("emulated gets"),
    /** The owner's UCX was busy with others all the time. */
    UNKNOWN("gets that may be emulated (the owner was too busy to tell)"),
    /** A get did not work. */
    FAILED("gets that fail");

    /** Gets of a trial, one after the other. */
    private static final int GETS = 16;

    /** Of gets that are tried before: UCX does small ones in other ways than large ones. */
    private static final long[] SIZES = {1, 64, 900, 4 << 10};

    /** More than what UCX copies on the way, whichever way it does gets. */
    private static final long BYTES = 4 << 10;

    /** Others make the peer's UCX busy, such as this executor's first contact the other way. */
    private static final int TRIALS = 5;

    private static final int LONGEST_PAUSE_MS = 20;

    private final String words;

    GetKind(final String words) {
      this.words = words;
    }

    /**
     * Finds out by gets of 4 KiB each, after one of each size, which have to bring the right bytes.
     *
     * @param target what to get; NONE is the answer if it is none
     * @param to of the target's kind of memory
     * @throws ExecutionException if a get fails, or brings other bytes
     * @throws TimeoutException if one does not end in time
     */
    static GetKind of(
        final TestReads reads, final TestTarget target, final TestRange.Destination to)
        throws ExecutionException, TimeoutException, InterruptedException {
      if (target.bytes() == 0) {
        return NONE;
      }
      for (final long bytes : SIZES) {
        reads.compare(target, to, bytes); // The first one connects, which is work for both.
      }
      reads.compare(target, to, reads.largest());
      boolean quiet = false;
      for (int trial = 0; trial < TRIALS; trial++) {
        final long before = reads.events();
        for (int i = 0; i < GETS; i++) {
          reads.get(target, to, BYTES);
        }
        final long after = reads.events();
        if (after - before < GETS) {
          return ONE_SIDED; // One trial shows it, and none shows the contrary: others may have
          // come.
        }
        // Whoever does the same the other way is not to keep step.
        reads
            .clock()
            .sleep(Duration.ofMillis(ThreadLocalRandom.current().nextInt(LONGEST_PAUSE_MS)));
        quiet |= reads.events() == after;
      }
      return quiet ? EMULATED : UNKNOWN;
    }

    /** For the log. */
    String words() {
      return words;
    }
  }
}
