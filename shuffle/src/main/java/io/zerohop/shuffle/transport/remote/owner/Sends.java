package io.zerohop.shuffle.transport.remote.owner;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.transport.remote.carrier.Carrier;
import io.zerohop.shuffle.transport.remote.memory.Slabs;
import io.zerohop.shuffle.transport.remote.wire.Wire;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Sends readers the blocks on which they hold leases. Thread safe. */
public final class Sends implements CarrierAnswers<SentReader> {
  private static final Logger LOG = LoggerFactory.getLogger(Sends.class);

  private final Carrier carrier;
  private final Slabs slabs;
  private final Devices devices;
  private final Config conf;
  private final Clock clock;
  private final Executor slow;
  private final SendQueue queue;

  /**
   * @param slabs what small blocks are sent from; stay the caller's
   * @param conf bounds copies on the GPU, and what is being sent at a time
   * @param clock by which what is sent takes its time
   * @param slow makes copies, and waits for the GPU
   */
  public Sends(
      final Carrier carrier,
      final Slabs slabs,
      final Devices devices,
      final Config conf,
      final Clock clock,
      final Executor slow) {
    this.carrier = carrier;
    this.slabs = slabs;
    this.devices = devices;
    this.conf = conf;
    this.clock = clock;
    this.slow = slow;
    this.queue = new SendQueue(slow, conf.fetch().receiveBuffers());
  }

  @Override
  public SentReader reader(final Consumer<ServedLease> left) {
    return new SentReader(carrier, this::inBackground, left, clock);
  }

  @Override
  public byte[] hello(final SentReader reader, final byte[] address, final boolean gpu) {
    reader.address(address);
    return new byte[0];
  }

  @Override
  public void answer(
      final byte kind,
      final ByteBuffer question,
      final SentReader reader,
      final Consumer<ByteBuffer> answer) {
    if (kind != Wire.SEND) {
      throw new IllegalArgumentException("there is no such question");
    }
    final long id = question.getLong();
    final long transfer = question.getLong();
    final long bytes = reader.bytes(id);
    queue.submit(reader, bytes, () -> begin(reader, id, bytes, transfer, answer));
  }

  /**
   * Sends what it is the turn of. Whatever comes in between, the reader is answered and the place
   * in the queue given back: nobody stands behind this thread to do it.
   */
  private void begin(
      final SentReader reader,
      final long id,
      final long bytes,
      final long transfer,
      final Consumer<ByteBuffer> answer) {
    ByteBuffer words;
    try {
      words = start(reader, id, bytes, transfer).answer();
    } catch (final RuntimeException | OutOfMemoryError e) {
      LOG.debug("blocks cannot be sent", e);
      queue.ended(reader, bytes);
      words = Wire.refusal(e);
    }
    RemoteService.tell(answer, words);
  }

  /**
   * The lease is looked for when it is its turn: what only waits holds nothing more than that.
   *
   * @return what is under way; with the last of it the place in the queue is given back
   * @throws RuntimeException if nothing is sent; then nothing is held either, but the place
   */
  private MessageSender start(
      final SentReader reader, final long id, final long bytes, final long transfer) {
    final ServedLease lease = reader.find(id);
    if (lease == null) {
      throw new ZerohopException(
          ZerohopException.Category.RETRY, "the lease on the blocks has ended");
    }
    final Packing packing = new Packing(lease, slabs, carrier.sizes());
    final Runnable end =
        () -> {
          reader.sent(transfer);
          packing.close();
          lease.release();
          reader.drop(id);
        };
    boolean begun = false;
    try {
      lease.bringToHost(devices, conf.device().timeout());
      final List<MessageSender.Message> messages = packing.messages();
      // The carrier's thread is the one that knows the end, and must not wait for memory to be
      // freed.
      final MessageSender sending =
          new MessageSender(
              reader.back(),
              transfer,
              messages,
              carrier.sizes().atOnce(),
              failure -> inBackground(() -> sent(reader, bytes, end)));
      begun = true;
      reader.sends(transfer);
      sending.start();
      return sending;
    } finally {
      if (!begun) {
        end.run();
      }
    }
  }

  private void sent(final SentReader reader, final long bytes, final Runnable end) {
    try {
      end.run();
    } catch (final RuntimeException e) {
      ShuffleCode.SENT_NOT_FREED
          .says("cannot release the memory of blocks that were sent to a reader")
          .warn(LOG, e);
    }
    queue.ended(reader, bytes);
  }

  private void inBackground(final Runnable chore) {
    RemoteService.inBackground(slow, chore);
  }

  /** Bytes of the windows that are being sent. */
  public long bytes() {
    return queue.bytes();
  }
}
