package io.zerohop.spark.control;

import io.netty.util.concurrent.Future;
import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.shuffle.transport.ControlLink;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.TransportClient;

/**
 * An authenticated connection to another executor's channel, for requests. Thread safe; owns it.
 */
final class SparkControlLink implements ControlLink {
  private final TransportClient client;
  private final String peer;
  private final ControlLimits limits;
  private final Duration answerLimit;
  private final Set<CompletableFuture<ByteBuffer>> open = ConcurrentHashMap.newKeySet();
  private final List<Runnable> actions = new ArrayList<>();
  private volatile boolean broken;

  /**
   * @param client proven; this link's from now on
   * @param peer how messages name the other end
   */
  SparkControlLink(
      final TransportClient client,
      final String peer,
      final ControlLimits limits,
      final Duration answerLimit) {
    this.client = client;
    this.peer = peer;
    this.limits = limits;
    this.answerLimit = answerLimit;
    client.getChannel().closeFuture().addListener(ignored -> breakNow());
  }

  @Override
  public CompletableFuture<ByteBuffer> ask(final ByteBuffer question) {
    if (question.remaining() > limits.questionBytes()) {
      return CompletableFuture.failedFuture(
          new ZerohopException(
              Category.FALLBACK,
              Message.of(
                      "a request of "
                          + question.remaining()
                          + " bytes is longer than "
                          + limits.questionBytes())
                  .at(peer)));
    }
    final CompletableFuture<ByteBuffer> future = new CompletableFuture<>();
    open.add(future);
    if (broken) {
      open.remove(future);
      future.completeExceptionally(closed(null));
      return future;
    }
    try {
      send(question, future);
    } catch (final RejectedExecutionException e) {
      open.remove(future);
      future.completeExceptionally(closed(e));
    }
    return future;
  }

  private void send(final ByteBuffer question, final CompletableFuture<ByteBuffer> future) {
    final long request = client.sendRpc(question.slice(), new Reply(future));
    final Future<?> timer =
        client
            .getChannel()
            .eventLoop()
            .schedule(() -> giveUp(request, future), answerLimit.toNanos(), TimeUnit.NANOSECONDS);
    future.whenComplete(
        (answer, failure) -> {
          open.remove(future);
          timer.cancel(false);
        });
  }

  private void giveUp(final long request, final CompletableFuture<ByteBuffer> future) {
    client.removeRpcRequest(request);
    future.completeExceptionally(
        new ExchangeException(
            Reason.TIMEOUT,
            Message.of("an executor did not answer within " + answerLimit.toMillis() + " ms")
                .at(peer)
                .remedy("if it is only slow, raise spark.zerohop.device.timeout")));
  }

  private ExchangeException closed(final Throwable cause) {
    return new ExchangeException(
        Reason.CLOSED, "The control connection to " + peer + " ended", cause);
  }

  @Override
  public boolean alive() {
    return !broken && client.isActive();
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
    client.getChannel().close();
    breakNow();
  }

  private void breakNow() {
    final List<Runnable> due;
    synchronized (actions) {
      broken = true;
      due = List.copyOf(actions);
      actions.clear();
    }
    for (final CompletableFuture<ByteBuffer> future : open) {
      future.completeExceptionally(closed(null));
    }
    open.clear();
    due.forEach(Runnable::run);
  }

  @Override
  public String toString() {
    return "control link to " + peer;
  }

  /** The response to one request; its buffer is Spark's, which takes it back. */
  private final class Reply implements RpcResponseCallback {
    private final CompletableFuture<ByteBuffer> future;

    private Reply(final CompletableFuture<ByteBuffer> future) {
      this.future = future;
    }

    @Override
    public void onSuccess(final ByteBuffer answer) {
      if (!future.isDone()) {
        future.complete(ByteBuffer.allocate(answer.remaining()).put(answer).flip());
      }
    }

    @Override
    public void onFailure(final Throwable failure) {
      final ZerohopException refusal = Refusal.read(failure);
      future.completeExceptionally(refusal == null ? closed(failure) : refusal);
    }
  }
}
