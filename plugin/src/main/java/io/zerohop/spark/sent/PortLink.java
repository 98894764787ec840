package io.zerohop.spark.sent;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.ControlChannel.BreakableLink;
import io.zerohop.spark.sent.Connections.Connection;
import io.zerohop.spark.sent.Uploads.Reply;
import io.zerohop.spark.sent.Uploads.UploadId;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * A link to an owner: requests are uploads to it, and responses are uploads to this executor.
 * Thread safe; owns its connection.
 */
final class PortLink extends BreakableLink {
  private final long number;
  private final String self;
  private final String owner;
  private final Connection connection;
  private final Duration answerLimit;
  private final Clock clock;
  private final AtomicInteger nextQuestion = new AtomicInteger();
  private final Map<Integer, Open> open = new ConcurrentHashMap<>();

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
    final CompletableFuture<ByteBuffer> answer = begin();
    open.put(id, new Open(answer, clock.in(answerLimit)));
    answer.whenComplete((got, failure) -> open.remove(id));
    if (!answer.isDone()) {
      connection.upload(
          UploadId.word(UploadId.QUESTION, number, id, body.remaining()),
          body,
          (reply, failure) -> asked(answer, reply, failure));
    }
    return answer;
  }

  private void asked(
      final CompletableFuture<ByteBuffer> answer,
      final @Nullable Reply reply,
      final @Nullable Throwable failure) {
    if (failure != null) {
      answer.completeExceptionally(closed(null));
    } else if (reply != Reply.TAKEN) {
      answer.completeExceptionally(
          new ZerohopException(Category.RETRY, "executor " + owner + " accepts no request now"));
    }
  }

  /** Returns whether a question waits for its answer. */
  boolean waits(final int id) {
    return open.containsKey(id);
  }

  /** An answer has come; null if it was damaged. */
  void answered(final int id, final @Nullable ByteBuffer answer) {
    final Open question = open.get(id);
    if (question == null) {
      return;
    }
    if (answer == null) {
      question
          .answer()
          .completeExceptionally(
              new ZerohopException(Category.RETRY, "a response of " + owner + " was damaged"));
    } else {
      question.answer().complete(answer);
    }
  }

  /** Gives up questions that were not answered in time. */
  void checkOverdue() {
    for (final Open question : open.values()) {
      if (clock.isOver(question.overdue())) {
        question
            .answer()
            .completeExceptionally(
                new ExchangeException(
                    Reason.TIMEOUT,
                    "executor "
                        + owner
                        + " has not answered within "
                        + answerLimit.toMillis()
                        + " ms"));
      }
    }
  }

  @Override
  protected ExchangeException closed(final @Nullable Throwable cause) {
    return new ExchangeException(
        Reason.CLOSED, "the connection to executor " + owner + " ended", cause);
  }

  @Override
  public boolean alive() {
    return super.alive() && connection.alive();
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
}
