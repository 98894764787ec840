package io.zerohop.spark.blocktransfer.sent;

import io.zerohop.device.Message;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.spark.blocktransfer.sent.Uploads.Arriving;
import io.zerohop.spark.blocktransfer.sent.Uploads.Reply;
import java.nio.ByteBuffer;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.apache.spark.storage.BlockManagerId;

/**
 * A test upload to this executor itself. It shows whether this Spark supports such uploads, and
 * whether it accepts them now; an executor that is being decommissioned does not. Thread safe; the
 * connection is its connections'.
 */
final class SelfTest {
  private static final int BYTES = 64;

  private final Connections connections;
  private final PortSettings settings;
  private final long secret = new SecureRandom().nextLong() & Long.MAX_VALUE;
  private Connection connection;

  SelfTest(final Connections connections, final PortSettings settings) {
    this.connections = connections;
    this.settings = settings;
  }

  /**
   * Runs it, one at a time.
   *
   * @throws ExchangeException if it does not come within the limit
   */
  synchronized void run(final Duration limit) {
    if (connection == null || !connection.alive()) {
      final BlockManagerId self = settings.self().get();
      connection = connections.connect(self.host(), self.port(), limit);
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
      final Reply reply = settings.clock().get(end, limit);
      if (reply != Reply.TAKEN) {
        throw new ExchangeException(
            Reason.PROTOCOL, "this executor's block port does not pass uploads on (" + reply + ")");
      }
    } catch (final ExecutionException | TimeoutException e) {
      connection.close();
      throw new ExchangeException(
          Reason.CLOSED,
          Message.of("this executor accepts no uploads, as during decommissioning").because(e),
          e);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new ExchangeException(Reason.CLOSED, "interrupted while connecting", e);
    }
  }

  /** Returns the receiver of the test. */
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
