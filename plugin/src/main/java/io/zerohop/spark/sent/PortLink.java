package io.zerohop.spark.sent;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.spark.sent.Connections.Connection;
import io.zerohop.spark.sent.Uploads.Reply;
import io.zerohop.spark.sent.Uploads.UploadId;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * A link to an owner: requests are uploads to it, and responses are uploads to this executor.
 * Thread safe; owns its connection.
 */
final class PortLink implements ControlLink {
  private final long number;
  private final String self;
  private final String owner;
  private final Connection connection;
  private final Duration answerLimit;
  private final Clock clock;
  private final AtomicInteger nextQuestion = new AtomicInteger();
  private final Map<Integer, Open> open = new ConcurrentHashMap<>();
  private final List<Runnable> actions = new ArrayList<>();
  private volatile boolean broken;

  /** A question that was not answered yet. */
  private record Open(CompletableFuture<ByteBuffer> answer, long overdue) {}

  /**
   * @param number by which both ends know it; random
   * @param self this executor
   * @param owner how messages name the other end
   * @param answerLimit how long a question may wait for its answer
   */
  PortLink(
      final long number,
      final String self,
      final String owner,
      final Connection connection,
      final Duration answerLimit,
      final Clock clock) {
    this.number = number;
    this.self = self;
    this.owner = owner;
    this.connection = connection;
    this.answerLimit = answerLimit;
    this.clock = clock;
    connection.onClosed(this::breakNow);
  }

  long number() {
    return number;
  }

  @Override
  public CompletableFuture<ByteBuffer> ask(final ByteBuffer question) {
    final int id = nextQuestion.getAndIncrement() & Integer.MAX_VALUE;
    final ByteBuffer body = WordBodies.body(self, question);
    if (body.remaining() > PortCarrier.MAX_QUESTION_BYTES) {
      return CompletableFuture.failedFuture(
          new ZerohopException(
              Category.FALLBACK, "a request to " + owner + " is too long: " + body.remaining()));
    }
    final CompletableFuture<ByteBuffer> answer = new CompletableFuture<>();
    open.put(id, new Open(answer, clock.in(answerLimit)));
    if (broken) {
      fail(id, closed());
      return answer;
    }
    connection.upload(
        UploadId.word(UploadId.QUESTION, number, id, body.remaining()),
        body,
        (reply, failure) -> asked(id, reply, failure));
    return answer;
  }

  private void asked(final int id, final @Nullable Reply reply, final @Nullable Throwable failure) {
    if (failure != null) {
      fail(id, closed());
    } else if (reply != Reply.TAKEN) {
      fail(
          id,
          new ZerohopException(Category.RETRY, "executor " + owner + " accepts no request now"));
    }
  }

  /** Returns whether a question waits for its answer. */
  boolean waits(final int id) {
    return open.containsKey(id);
  }

  /** An answer has come; null if it was damaged. */
  void answered(final int id, final @Nullable ByteBuffer answer) {
    if (answer == null) {
      fail(id, new ZerohopException(Category.RETRY, "a response of " + owner + " was damaged"));
      return;
    }
    final Open question = open.remove(id);
    if (question != null) {
      question.answer().complete(answer);
    }
  }

  private void fail(final int id, final RuntimeException why) {
    final Open question = open.remove(id);
    if (question != null) {
      question.answer().completeExceptionally(why);
    }
  }

  /** Gives up questions that were not answered in time. */
  void checkOverdue() {
    open.forEach(
        (id, question) -> {
          if (clock.isOver(question.overdue())) {
            fail(
                id,
                new ExchangeException(
                    Reason.TIMEOUT,
                    "executor "
                        + owner
                        + " has not answered within "
                        + answerLimit.toMillis()
                        + " ms"));
          }
        });
  }

  private ExchangeException closed() {
    return new ExchangeException(Reason.CLOSED, "the connection to executor " + owner + " ended");
  }

  @Override
  public boolean alive() {
    return !broken && connection.alive();
  }

  @Override
  public void onClosed(final Runnable action) {
    synchronized (actions) {
      if (!broken) {
        actions.add(action);
        return;
      }
    }
    action.run();
  }

  @Override
  public void close() {
    if (alive()) {
      final ByteBuffer body = WordBodies.body(self, ByteBuffer.allocate(0));
      connection.upload(
          UploadId.word(UploadId.BYE, number, 0, body.remaining()),
          body,
          (reply, failure) -> connection.close());
    }
    breakNow();
  }

  private void breakNow() {
    final List<Runnable> due;
    synchronized (actions) {
      broken = true;
      due = List.copyOf(actions);
      actions.clear();
    }
    open.keySet().forEach(id -> fail(id, closed()));
    due.forEach(Runnable::run);
  }
}
