package io.zerohop.shuffle.keeper;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Threads;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.transport.ControlChannel;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Asks the keepers of other nodes, by one link to each. A question is asked once more if its link
 * breaks, and again as long as the keeper is busy. Has two threads that connect, while they do.
 * Thread safe; nothing waits.
 */
final class FarKeepers implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(FarKeepers.class);
  private static final int THREADS = 2;
  private static final Duration IDLE = Duration.ofSeconds(10);
  private static final int MAX_ATTEMPTS = 2;

  /** How long a keeper may answer that it is busy. */
  private static final Duration BUSY_LIMIT = Duration.ofMinutes(2);

  private final Supplier<ControlChannel> channels;
  private final Consumer<BlockSource> notReached;
  private final Duration connectLimit;
  private final Clock clock;
  private final ThreadPoolExecutor threads;

  /** By host and port of a keeper. */
  private final Map<String, ControlLink> links = new ConcurrentHashMap<>();

  /** Keepers that could not be reached, by host and port: nobody waits for one again and again. */
  private final Map<String, NotReached> missed = new ConcurrentHashMap<>();

  @GuardedBy("this")
  private @Nullable ControlChannel channel;

  @GuardedBy("this")
  private boolean closed;

  private record NotReached(RuntimeException why, long until) {}

  /** Work for a thread: it is done, or its failure is told. */
  private record Work(Runnable work, Consumer<Throwable> failure) implements Runnable {
    @Override
    public void run() {
      try {
        work.run();
      } catch (final RuntimeException e) {
        failure.accept(e);
      }
    }
  }

  /** Thrown where a keeper has not taken over from an executor. */
  static final class NotLeftException extends ZerohopException {
    private static final long serialVersionUID = 1L;

    private NotLeftException(final BlockSource source) {
      super(Category.FETCH_FAILED, notThere(source), null);
    }
  }

  /**
   * @param channels makes the channel by which keepers are asked, once it is needed; closed with
   *     this. It limits how long an answer may take
   * @param notReached hears of each question whose keeper did not answer, after it has failed. May
   *     wait
   * @param connectLimit longest time to connect to a keeper
   */
  FarKeepers(
      final Supplier<ControlChannel> channels,
      final Consumer<BlockSource> notReached,
      final Duration connectLimit,
      final Clock clock) {
    this.channels = channels;
    this.notReached = notReached;
    this.connectLimit = connectLimit;
    this.clock = clock;
    this.threads = Threads.pool("kept", THREADS, IDLE);
  }

  /** Says that a keeper lacks a block, or has not taken over from its owner. */
  static Message notThere(final BlockSource source) {
    return Message.of("the keeper of the node does not have it")
        .at("executor " + source.executorId());
  }

  /**
   * Asks for blocks of one shuffle.
   *
   * @param from offset in the first block
   * @return at least one {@link KeptWire.Item}, within a limited time. Fails with a {@link
   *     NotLeftException} if the keeper has not taken over from the owner
   */
  CompletableFuture<ByteBuffer> ask(
      final BlockSource source, final long from, final List<Block> blocks) {
    final Question question = new Question(source, from, blocks);
    question.begin();
    return question.answer;
  }

  /** A question to the keeper of one source. Used by one thread at a time. */
  private final class Question {
    private final BlockSource source;
    private final String peer;
    private final ByteBuffer words;
    private final long busyUntil = clock.in(BUSY_LIMIT);
    private final CompletableFuture<ByteBuffer> answer = new CompletableFuture<>();
    private int attempts;

    private Question(final BlockSource source, final long from, final List<Block> blocks) {
      this.source = source;
      this.peer = source.host() + ':' + source.knownLocation().keeperPort();
      this.words =
          KeptWire.Read.of(
              source.knownLocation().socket(), blocks.get(0).shuffleId(), from, blocks);
    }

    private void begin() {
      final ControlLink known = links.get(peer);
      if (known != null && known.alive()) {
        ask(known);
      } else {
        onThread(() -> ask(link(source, peer)), this::fail);
      }
    }

    private void ask(final ControlLink link) {
      link.ask(words.duplicate())
          .whenComplete(
              (got, failure) -> {
                if (failure == null) {
                  take(link, got);
                } else if (++attempts < MAX_ATTEMPTS) {
                  begin();
                } else {
                  final Throwable cause = failure.getCause();
                  fail(failure instanceof CompletionException && cause != null ? cause : failure);
                }
              });
    }

    private void take(final ControlLink link, final ByteBuffer got) {
      if (got.remaining() > 1 && got.get(got.position()) == KeptWire.FOUND) {
        link.ask(KeptWire.taken(got.remaining())); // Also if nobody waits for it any more.
        answer.complete(got.position(got.position() + 1));
      } else if (!KeptWire.isBusy(got)) {
        fail(new NotLeftException(source));
      } else if (clock.isOver(busyUntil)) {
        fail(
            new ZerohopException(
                ZerohopException.Category.FETCH_FAILED,
                Message.of("the keeper was busy for two minutes").at(source.host())));
      } else {
        ask(link);
      }
    }

    private void fail(final Throwable cause) {
      answer.completeExceptionally(cause);
      // It neither gave nor refused anything. Busy is this executor, which has no thread for it.
      if (cause instanceof ExchangeException known
          && known.reason() != ExchangeException.Reason.BUSY) {
        onThread(
            () -> notReached.accept(source),
            e -> LOG.debug("nobody hears of {}", source.host(), e));
      }
    }
  }

  private void onThread(final Runnable work, final Consumer<Throwable> failure) {
    try {
      threads.execute(new Work(work, failure));
    } catch (final RejectedExecutionException | ZerohopException e) {
      failure.accept(e); // The executor ends, or has no thread left.
    }
  }

  /**
   * Returns a link to the keeper of a source. Waits a limited time.
   *
   * @throws ZerohopException if it cannot be reached, or could not a moment ago
   */
  private ControlLink link(final BlockSource source, final String peer) {
    final ControlLink known = links.get(peer);
    if (known != null && known.alive()) {
      return known;
    }
    missed.values().removeIf(keeper -> clock.isOver(keeper.until));
    final NotReached before = missed.get(peer);
    if (before != null) {
      throw before.why;
    }
    final ControlLink made = connect(source, peer);
    final ControlLink[] used = {made};
    links.compute(
        peer,
        (name, other) -> {
          used[0] = other != null && other.alive() ? other : made;
          return used[0];
        });
    if (used[0] != made) {
      made.close();
    }
    made.onClosed(() -> links.remove(peer, made));
    return used[0];
  }

  private ControlLink connect(final BlockSource source, final String peer) {
    final ControlChannel by = channel();
    try {
      return by.connect(source.host(), source.knownLocation().keeperPort(), connectLimit);
    } catch (final RuntimeException e) {
      missed.put(peer, new NotReached(e, clock.in(connectLimit)));
      throw e;
    }
  }

  private synchronized ControlChannel channel() {
    if (closed) {
      throw new IllegalStateException("blocks were requested while the executor shuts down");
    }
    ControlChannel known = channel;
    if (known == null) {
      known = channels.get();
      channel = known;
    }
    return known;
  }

  /** Questions that are under way fail, and those that wait for a thread. Idempotent. */
  @Override
  public void close() {
    final ControlChannel open;
    synchronized (this) {
      closed = true;
      open = channel;
      channel = null;
    }
    final List<Runnable> waiting = threads.shutdownNow();
    for (final Runnable work : waiting) {
      ((Work) work).failure().accept(new CancellationException("the executor ends"));
    }
    // Behind the threads, so that their end is not taken for the keepers'.
    links.values().forEach(ControlLink::close);
    links.clear();
    if (open != null) {
      open.close();
    }
  }
}
