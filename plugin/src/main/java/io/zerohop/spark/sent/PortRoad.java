package io.zerohop.spark.sent;

import io.zerohop.device.Crc32c;
import io.zerohop.device.Undo;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Memory;
import io.zerohop.shuffle.transport.remote.Carrier.Completion;
import io.zerohop.shuffle.transport.remote.Carrier.Road;
import io.zerohop.shuffle.transport.remote.Slabs;
import io.zerohop.shuffle.transport.remote.Slabs.Slab;
import io.zerohop.spark.sent.Connections.Connection;
import io.zerohop.spark.sent.MessageCodec.CodecChoice;
import io.zerohop.spark.sent.Uploads.Reply;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongConsumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The connections to one reader. A thread of ours computes each message's checksum, compresses the
 * message where that pays, and sends it by the connection with the fewest messages under way.
 *
 * <p>The reader reads each connection by one thread, and many clouds limit the rate of one. So a
 * road opens further connections while all that it has are busy: a few, and no more than {@link
 * Means#further} permits for all roads, since each costs both executors a file descriptor. If one
 * connection is lost, so is the road. Thread safe; owns its connections.
 */
final class PortRoad implements Road {
  private static final Logger LOG = LoggerFactory.getLogger(PortRoad.class);

  /** The largest compressed size that is sent, in tenths of the size without compression. */
  private static final int MAX_TENTHS = 9;

  private final Supplier<Connection> connector;
  private final int maxConnections;
  private final Means means;

  /** The first is there from the start. */
  private final List<Lane> lanes = new CopyOnWriteArrayList<>();

  /** Whether a connection is being opened, or could not be: the road goes on with those it has. */
  private final AtomicBoolean widening = new AtomicBoolean();

  /** Also once a connection was lost. */
  private volatile boolean closed;

  private final CodecChoice codecs;
  private final LongConsumer lost;

  /**
   * State that all roads of an executor share.
   *
   * @param executor sums and compresses
   * @param connects opens further connections, which takes long where the reader's host is gone
   * @param slabs what is compressed goes to until it is sent
   * @param clock by which codecs are measured
   * @param saved bytes that compression has kept from the network
   * @param further a permit for each connection of any road beside its first
   */
  record Means(
      Executor executor,
      Executor connects,
      Slabs slabs,
      Clock clock,
      LongAdder saved,
      Semaphore further) {}

  /** One connection, and how many messages it has under way. */
  private record Lane(Connection connection, AtomicInteger underWay) {}

  /**
   * Opens the first connection. Waits for it, a limited time.
   *
   * @param connector opens a connection to the reader, within a limit
   * @param maxConnections how many there may be, at least 1
   * @param codecs chooses for this road alone
   * @param lost tells the reader that messages of a transfer will not come; does not wait
   * @throws RuntimeException of the connector
   */
  PortRoad(
      final Supplier<Connection> connector,
      final int maxConnections,
      final Means means,
      final CodecChoice codecs,
      final LongConsumer lost) {
    this.connector = connector;
    this.maxConnections = maxConnections;
    this.means = means;
    this.codecs = codecs;
    this.lost = lost;
    open(connector.get());
  }

  private void open(final Connection made) {
    lanes.add(new Lane(made, new AtomicInteger()));
    made.onClosed(this::connectionLost);
    if (closed) {
      made.close(); // Whoever closed the road did not see it.
    }
  }

  /** The connection with the least to do; asks for another one if that has something to do. */
  private Lane lane() {
    Lane least = lanes.get(0);
    for (final Lane lane : lanes) {
      if (lane.underWay().get() < least.underWay().get()) {
        least = lane;
      }
    }
    if (least.underWay().getAndIncrement() > 0
        && lanes.size() < maxConnections
        && widening.compareAndSet(false, true)) {
      widen();
    }
    return least;
  }

  private void widen() {
    final Semaphore further = means.further();
    if (!further.tryAcquire()) {
      widening.set(false);
      return;
    }
    try (Undo undo = new Undo(further::release)) {
      means.connects().execute(this::openAnother);
      undo.done();
    } catch (final RejectedExecutionException e) {
      LOG.debug("this executor is shutting down", e);
    }
  }

  /** Holds a permit, which the connection returns when it is closed. */
  private void openAnother() {
    final Semaphore further = means.further();
    Connection made = null;
    try {
      made = connector.get();
      made.onClosed(further::release);
    } catch (final RuntimeException e) {
      LOG.debug("no further connection to a reader could be opened", e);
      return;
    } finally {
      if (made == null) {
        further.release();
      }
    }
    open(made);
    widening.set(false);
  }

  @Override
  public void send(
      final long id,
      final long offset,
      final long address,
      final long bytes,
      final Completion done) {
    try {
      means.executor().execute(() -> sendNow(id, offset, address, Math.toIntExact(bytes), done));
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
    if (closed) {
      done.done("the connection was lost"); // Netty's threads may have ended with it.
      return;
    }
    try (Undo undo = new Undo()) {
      final Message message = message(id, offset, address, bytes);
      undo.add(message::release);
      final Lane lane = lane();
      undo.add(() -> lane.underWay().decrementAndGet());
      codecs.begins();
      undo.add(() -> codecs.ended(0));
      lane.connection()
          .upload(
              message.id(),
              message.body(),
              (reply, failure) -> {
                lane.underWay().decrementAndGet();
                codecs.ended(failure == null ? message.id().length() : 0);
                message.release(means.executor());
                ended(reply, failure, done);
              });
      undo.done();
    } catch (final RuntimeException | OutOfMemoryError e) { // Nobody stands behind this thread.
      done.done(String.valueOf(e.getMessage()));
    }
  }

  /**
   * The bytes of one upload.
   *
   * @param copy holds the body, if that is compressed
   */
  private record Message(UploadId id, ByteBuffer body, @Nullable Slab copy) {
    void release() {
      if (copy != null) {
        copy.release();
      }
    }

    /** From an event loop, which must not wait: the release of pinned memory may wait for a GPU. */
    void release(final Executor executor) {
      if (copy == null) {
        return;
      }
      try {
        executor.execute(copy::release);
      } catch (final RejectedExecutionException e) {
        copy.release(); // This executor is shutting down.
      }
    }
  }

  private Message message(final long id, final long offset, final long address, final int bytes) {
    final int sum = Crc32c.of(address, bytes);
    final ByteBuffer plain = Memory.view(address, bytes);
    final MessageCodec codec = codecs.next(bytes);
    final Message compressed =
        codec == MessageCodec.PLAIN ? null : compressed(codec, id, offset, plain, sum);
    return compressed == null
        ? new Message(UploadId.message(id, offset, bytes, sum), plain, null)
        : compressed;
  }

  /** Null if that leaves too much of it, or there is no memory for it. */
  private @Nullable Message compressed(
      final MessageCodec codec,
      final long id,
      final long offset,
      final ByteBuffer plain,
      final int sum) {
    final int bytes = plain.remaining();
    final int most = (int) ((long) bytes * MAX_TENTHS / 10);
    final Slab copy;
    try {
      copy = means.slabs().take(most);
    } catch (final RuntimeException | OutOfMemoryError e) {
      return null; // It goes as it is.
    }
    try (Undo undo = new Undo(copy::release)) {
      final ByteBuffer body = Memory.view(copy.address(), most).order(ByteOrder.LITTLE_ENDIAN);
      final long begun = means.clock().nanos();
      final int left = codec.compress(plain, body.putInt(sum));
      codecs.compressed(
          codec, bytes, left == MessageCodec.NO_ROOM ? bytes : left, means.clock().since(begun));
      if (left == MessageCodec.NO_ROOM) {
        return null;
      }
      body.limit(body.position() + left).position(0);
      means.saved().add(bytes - body.remaining());
      undo.done();
      return new Message(
          UploadId.compressed(id, offset, codec, body.remaining(), bytes), body, copy);
    }
  }

  private static void ended(
      final @Nullable Reply reply, final @Nullable Throwable failure, final Completion done) {
    if (failure != null) {
      done.done(String.valueOf(failure.getMessage()));
    } else {
      done.done(reply == Reply.TAKEN ? null : "the reader does not take it");
    }
  }

  @Override
  public void lost(final long id) {
    lost.accept(id);
  }

  @Override
  public boolean alive() {
    return !closed;
  }

  private void connectionLost() {
    if (!closed) {
      LOG.debug("a connection to a reader was lost");
    }
    close();
  }

  @Override
  public void close() {
    closed = true;
    lanes.forEach(lane -> lane.connection().close());
  }
}
