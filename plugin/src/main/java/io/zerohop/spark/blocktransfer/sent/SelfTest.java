package io.zerohop.spark.blocktransfer.sent;

import io.zerohop.device.Message;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Clock;
import io.zerohop.spark.blocktransfer.sent.Uploads.Arriving;
import io.zerohop.spark.blocktransfer.sent.Uploads.Reply;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.apache.spark.storage.BlockManagerId;

/**
 * An upload to this executor itself, as others make them: whether the Spark at hand has the way at
 * all, and whether it takes uploads now, which it does not once the executor is being
 * decommissioned. Thread safe; the connection is its connections'.
 */
final class SelfTest {
  private static final int BYTES = 64;

  private final Connections connections;
  private final Supplier<BlockManagerId> self;
  private final Clock clock;
  private final long secret = new SecureRandom().nextLong() & Long.MAX_VALUE;
  private Connection connection;

  /**
   * @param self where this executor's block port is
   */
  SelfTest(final Connections connections, final Supplier<BlockManagerId> self, final Clock clock) {
    this.connections = connections;
    this.self = self;
    this.clock = clock;
  }

  /**
   * Runs it, one at a time.
   *
   * @throws ExchangeException if it does not come within the limit
   */
  synchronized void run(final Duration limit) {
    if (connection == null || !connection.alive()) {
      final BlockManagerId own = self.get();
      connection = connections.connect(own.host(), own.port(), limit);
    }
    final CompletableFuture<Reply> end = new CompletableFuture<>();
    connection.upload(
        UploadId.word(UploadId.ECHO, secret, 0, BYTES),
        ByteBuffer.allocate(BYTES),
        (reply, failure) -> {
          if (failure == null) {
            end.complete(reply);
          } else {
            end.completeExceptionally(failure);
          }
        });
    try {
      final Reply reply = clock.get(end, limit);
      if (reply != Reply.TAKEN) {
        throw new ExchangeException(
            Reason.PROTOCOL, "this executor's block port does not hand uploads on (" + reply + ")");
      }
    } catch (final ExecutionException | TimeoutException e) {
      connection.close();
      throw new ExchangeException(
          Reason.CLOSED,
          Message.of("this executor takes no uploads, as when it is being decommissioned")
              .because(e),
          e);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new ExchangeException(Reason.CLOSED, "interrupted while connecting", e);
    }
  }

  /** What takes it. */
  Arriving arriving(final UploadId id) {
    if (id.number() != secret || id.length() != BYTES) {
      return null;
    }
    return new Arriving() {
      @Override
      public void bytes(final ByteBuffer piece) {}

      @Override
      public Reply complete() {
        return Reply.TAKEN;
      }

      @Override
      public void failed(final String why) {}
    };
  }
}
