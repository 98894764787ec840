package io.zerohop.spark.blocktransfer.sent;

import io.zerohop.device.posix.Memory;
import io.zerohop.shuffle.extent.Crc32c;
import io.zerohop.shuffle.transport.remote.carrier.Completion;
import io.zerohop.shuffle.transport.remote.carrier.Road;
import io.zerohop.spark.blocktransfer.sent.Uploads.Reply;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.LongConsumer;

/**
 * The way to one reader: each message is summed by a thread of ours and then sent from where it
 * lies. Thread safe; owns its connection.
 */
final class PortRoad implements Road {
  private final Connection connection;
  private final Executor executor;
  private final LongConsumer lost;

  /**
   * @param executor sums
   * @param lost told, by a thread of Netty's, of transfers of which a message was lost
   */
  PortRoad(final Connection connection, final Executor executor, final LongConsumer lost) {
    this.connection = connection;
    this.executor = executor;
    this.lost = lost;
  }

  @Override
  public void send(
      final long id,
      final long offset,
      final long address,
      final long bytes,
      final Completion done) {
    try {
      executor.execute(() -> sendNow(id, offset, address, Math.toIntExact(bytes), done));
    } catch (final RejectedExecutionException e) {
      done.done("this executor is shutting down");
    }
  }

  private void sendNow(
      final long id,
      final long offset,
      final long address,
      final int bytes,
      final Completion done) {
    if (!connection.alive()) {
      done.done("the connection was lost"); // Netty's threads may have ended with it.
      return;
    }
    try {
      connection.upload(
          UploadId.message(id, offset, bytes, Crc32c.of(address, bytes)),
          Memory.view(address, bytes),
          (reply, failure) -> {
            if (failure != null) {
              connection.close(); // What is asked for from now on goes by another one.
              lost.accept(id);
            }
            ended(reply, failure, done);
          });
    } catch (final RuntimeException | OutOfMemoryError e) { // Nobody stands behind this thread.
      done.done(String.valueOf(e.getMessage()));
    }
  }

  private static void ended(final Reply reply, final Throwable failure, final Completion done) {
    if (failure != null) {
      done.done(String.valueOf(failure.getMessage()));
    } else {
      done.done(reply == Reply.TAKEN ? null : "the reader does not take it");
    }
  }

  @Override
  public void close() {
    connection.close();
  }
}
