package io.zerohop.shuffle.transport.remote.owner;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.transport.ControlService;
import io.zerohop.shuffle.transport.remote.carrier.Carrier;
import io.zerohop.shuffle.transport.remote.memory.Slabs;
import io.zerohop.shuffle.transport.remote.wire.ReceiveLayout.Part;
import io.zerohop.shuffle.transport.remote.wire.Wire;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The owner's side: tells readers where blocks lie, holds them meanwhile, and sends them. See
 * {@link Wire} for what can be asked; a carrier may have more. Thread safe.
 */
public final class RemoteService implements ControlService {
  private static final Logger LOG = LoggerFactory.getLogger(RemoteService.class);

  /** A reader that has not passed by then is taken for one that never will. */
  private static final Duration LEASE_LIMIT = Duration.ofMinutes(5);

  /** How long memory stays for a reader that is gone: what it had asked for may still be read. */
  private static final Duration GRACE = Duration.ofSeconds(10);

  private final long incarnation;
  private final Carrier carrier;
  private final CarrierAnswers more;
  private final Slabs slabs;
  private final BlockHolder holder;
  private final Devices devices;
  private final Duration deviceLimit;
  private final Clock clock;
  private final Executor quick;
  private final Executor slow;
  private final SendQueue sends;
  private final Map<Long, ServedReader> readers = new ConcurrentHashMap<>();
  private final Queue<ServedLease> left = new ConcurrentLinkedQueue<>();
  private final AtomicLong nextLease = new AtomicLong();

  /**
   * @param incarnation which life of this executor answers
   * @param more what only this carrier is asked
   * @param slabs what small blocks are sent from; stay the caller's
   * @param mostSentBytes of all windows that are being sent at a time
   * @param clock by which leases end
   * @param quick answers, which takes no time but more than a channel's thread should
   * @param slow makes copies, and waits for the GPU
   */
  public RemoteService(
      final long incarnation,
      final Carrier carrier,
      final CarrierAnswers more,
      final Slabs slabs,
      final BlockHolder holder,
      final Devices devices,
      final Duration deviceLimit,
      final long mostSentBytes,
      final Clock clock,
      final Executor quick,
      final Executor slow) {
    this.incarnation = incarnation;
    this.carrier = carrier;
    this.more = more;
    this.slabs = slabs;
    this.holder = holder;
    this.devices = devices;
    this.deviceLimit = deviceLimit;
    this.clock = clock;
    this.quick = quick;
    this.slow = slow;
    this.sends = new SendQueue(slow, mostSentBytes);
  }

  @Override
  public void asked(final long link, final ByteBuffer question, final Consumer<ByteBuffer> answer) {
    final ByteBuffer copy = ByteBuffer.allocate(question.remaining()).put(question).flip();
    final ServedReader reader =
        readers.computeIfAbsent(
            link, first -> new ServedReader(carrier, this::inBackground, left::add, clock));
    quick.execute(() -> answerOrRefuse(reader, copy, answer));
  }

  /** Without an answer the reader would wait until its limit. */
  private void answerOrRefuse(
      final ServedReader reader, final ByteBuffer question, final Consumer<ByteBuffer> answer) {
    try {
      answer(reader, question, answer);
    } catch (final RuntimeException e) {
      LOG.debug("a question of a reader cannot be answered", e);
      tell(answer, Wire.refusal(e));
    }
  }

  private void answer(
      final ServedReader reader, final ByteBuffer question, final Consumer<ByteBuffer> answer) {
    final byte kind = question.get();
    switch (kind) {
      case Wire.HELLO -> answer.accept(hello(reader, question));
      case Wire.PING -> answer.accept(Wire.granted(0).flip());
      case Wire.OPEN -> answer.accept(open(reader, question));
      case Wire.SEND -> send(reader, question, answer);
      case Wire.CLOSE ->
          answer.accept(
              Wire.granted(1).put((byte) (reader.drop(question.getLong()) ? 1 : 0)).flip());
      default -> more.answer(kind, question, reader, answer);
    }
  }

  private ByteBuffer hello(final ServedReader reader, final ByteBuffer question) {
    if (question.getInt() != Wire.VERSION) {
      throw new IllegalArgumentException(
          "the executors run different versions of Zerohop; give all the same jar");
    }
    reader.address(Wire.bytes(question));
    final byte[] rest = more.hello(question.get() != 0);
    final ByteBuffer answer = Wire.granted(4 + 8 + rest.length);
    return answer.putInt(Wire.VERSION).putLong(incarnation).put(rest).flip();
  }

  private ByteBuffer open(final ServedReader reader, final ByteBuffer question) {
    final boolean direct = question.get() != 0;
    final ServedLease lease = ServedLease.of(holder, question.getInt(), direct, question, clock);
    final long id = nextLease.incrementAndGet();
    final ByteBuffer answer = Wire.granted(8 + 1 + lease.extents().encodedBytes());
    answer.putLong(id).put((byte) (lease.byMessage() ? 1 : 0));
    lease.extents().write(answer);
    reader.hold(id, lease);
    return answer.flip();
  }

  private void send(
      final ServedReader reader, final ByteBuffer question, final Consumer<ByteBuffer> answer) {
    final long id = question.getLong();
    final long transfer = question.getLong();
    final boolean hostOnly = question.get() != 0;
    final long bytes = reader.bytes(id);
    sends.submit(reader, bytes, () -> begin(reader, id, bytes, transfer, hostOnly, answer));
  }

  /**
   * Sends what it is the turn of. Whatever comes in between, the reader is answered and the place
   * in the queue given back: nobody stands behind this thread to do it.
   */
  private void begin(
      final ServedReader reader,
      final long id,
      final long bytes,
      final long transfer,
      final boolean hostOnly,
      final Consumer<ByteBuffer> answer) {
    ByteBuffer words;
    try {
      words = start(reader, id, bytes, transfer, hostOnly).answer();
    } catch (final RuntimeException | OutOfMemoryError e) {
      LOG.debug("blocks cannot be sent", e);
      sends.ended(reader, bytes);
      words = Wire.refusal(e);
    }
    tell(answer, words);
  }

  /**
   * The lease is looked for when it is its turn: what only waits holds nothing more than that.
   *
   * @return what is under way; with the last of it the place in the queue is given back
   * @throws RuntimeException if nothing is sent; then nothing is held either, but the place
   */
  private MessageSender start(
      final ServedReader reader,
      final long id,
      final long bytes,
      final long transfer,
      final boolean hostOnly) {
    final ServedLease lease = reader.find(id);
    if (lease == null) {
      throw new ZerohopException(
          ZerohopException.Category.RETRY, "the lease on the blocks has ended");
    }
    final Packing packing =
        new Packing(lease, hostOnly ? Part.HOST : Part.ALL, slabs, carrier.sizes());
    final Runnable end =
        () -> {
          reader.sent(transfer);
          packing.close();
          lease.release();
          if (!hostOnly) {
            reader.drop(id);
          }
        };
    boolean begun = false;
    try {
      if (!hostOnly) {
        lease.bringToHost(devices, deviceLimit);
      }
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

  private void sent(final ServedReader reader, final long bytes, final Runnable end) {
    try {
      end.run();
    } catch (final RuntimeException e) {
      ShuffleCode.SENT_NOT_FREED.warn(LOG, "what was sent to a reader cannot be let go", e);
    }
    sends.ended(reader, bytes);
  }

  /** A reader that is gone needs no answer, and one that was answered gets no second one. */
  private static void tell(final Consumer<ByteBuffer> answer, final ByteBuffer words) {
    try {
      answer.accept(words);
    } catch (final RuntimeException e) {
      LOG.debug("an answer was not taken", e);
    }
  }

  private void inBackground(final Runnable chore) {
    try {
      slow.execute(chore);
    } catch (final RejectedExecutionException e) {
      chore.run(); // This executor is shutting down.
    }
  }

  /** Ends what readers take too long for, and what those who are gone have left. */
  @SuppressWarnings("ModifyCollectionInEnhancedForLoop") // A concurrent queue.
  public void expire() {
    readers.values().forEach(reader -> reader.expire(LEASE_LIMIT.toNanos()));
    for (final ServedLease lease : left) {
      // Not counted any more when its memory is free; close() may have taken it meanwhile.
      if (lease.leftNanos() > GRACE.toNanos() && left.remove(lease)) {
        lease.release();
      }
    }
  }

  /** Readers that are connected and have asked something. */
  public int readers() {
    return readers.size();
  }

  /** Bytes of the windows that are being sent. */
  public long sendingBytes() {
    return sends.bytes();
  }

  /** Leases that readers hold here. */
  public int leases() {
    return left.size() + readers.values().stream().mapToInt(ServedReader::leases).sum();
  }

  @Override
  public void disconnected(final long link) {
    final ServedReader reader = readers.remove(link);
    if (reader != null) {
      inBackground(reader::close);
    }
  }

  /** Ends all leases. The carrier must have ended, and with it what reads the memory. */
  public void close() {
    readers.values().forEach(ServedReader::close);
    readers.clear();
    for (ServedLease lease = left.poll(); lease != null; lease = left.poll()) {
      lease.release();
    }
  }
}
