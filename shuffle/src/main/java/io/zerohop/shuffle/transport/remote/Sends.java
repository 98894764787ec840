package io.zerohop.shuffle.transport.remote;

import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.transport.Self;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierException;
import io.zerohop.shuffle.transport.remote.Carrier.Road;
import io.zerohop.shuffle.transport.remote.ServedReader.SentReader;
import io.zerohop.shuffle.transport.remote.ServedReader.ServedLease;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Gives readers leases on blocks, and sends the blocks. Thread safe. */
public final class Sends extends RemoteService<SentReader> {
  private static final Logger LOG = LoggerFactory.getLogger(Sends.class);

  /** How often a reader is connected for one request: once more if the way is lost meanwhile. */
  private static final int TRIES = 2;

  private final Executor connects;
  private final Carrier carrier;
  private final Slabs slabs;
  private final Devices devices;
  private final SendQueue queue;

  /**
   * @param conf bounds copies on the GPU, and what is being sent at a time
   * @param self by whose clock what is sent takes its time
   * @param slow makes copies, and waits for the GPU
   * @param connects connects to readers, which may take long for one that is gone
   * @param slabs what small blocks are sent from; stay the caller's
   */
  public Sends(
      final Config conf,
      final Self self,
      final BlockHolder holder,
      final Executor quick,
      final Executor slow,
      final Executor connects,
      final Carrier carrier,
      final Slabs slabs,
      final Devices devices) {
    super(conf, self, holder, quick, slow);
    this.connects = connects;
    this.carrier = carrier;
    this.slabs = slabs;
    this.devices = devices;
    this.queue = new SendQueue(slow, conf.fetch().receiveBuffers());
  }

  /** A request to send the blocks of a lease. */
  private record Request(
      SentReader reader, long lease, long transfer, Consumer<ByteBuffer> answer) {}

  @Override
  protected SentReader reader(final Consumer<ServedLease> left) {
    return new SentReader(carrier, connects, conf.connectTimeout(), left, clock);
  }

  @Override
  protected byte[] hello(final SentReader reader, final byte[] address, final boolean gpu) {
    reader.address(address);
    return new byte[0];
  }

  @Override
  protected void answer(
      final byte kind,
      final ByteBuffer question,
      final SentReader reader,
      final Consumer<ByteBuffer> answer) {
    if (kind != Wire.SEND) {
      throw new IllegalArgumentException("there is no such request");
    }
    await(new Request(reader, question.getLong(), question.getLong(), answer), TRIES);
  }

  /**
   * Has a request wait for its turn once its reader is connected: as long as that takes, it has no
   * place that another reader could use.
   *
   * @param tries to connect, at least one
   */
  private void await(final Request request, final int tries) {
    final SentReader reader = request.reader();
    if (!reader.holds(request.lease())) {
      tell(request.answer(), Wire.refusal(ended()));
      return;
    }
    reader
        .back()
        .whenComplete(
            (road, failure) -> {
              if (failure != null) {
                LOG.debug("a reader cannot be reached", failure);
                tell(request.answer(), Wire.refusal(failure));
                return;
              }
              try {
                final long bytes = reader.bytes(request.lease());
                queue.submit(reader, bytes, () -> begin(request, bytes, road, tries - 1));
              } catch (final RuntimeException | OutOfMemoryError e) { // Nobody sees this future.
                tell(request.answer(), Wire.refusal(e));
              }
            });
  }

  private static ZerohopException ended() {
    return new ZerohopException(
        ZerohopException.Category.RETRY, "the lease on the blocks has ended");
  }

  /**
   * Sends what it is the turn of. Whatever comes in between, the reader is answered and the place
   * in the queue given back: nobody stands behind this thread to do it.
   *
   * @param tries to connect that are left if the road was lost while it waited
   */
  private void begin(final Request request, final long bytes, final Road road, final int tries) {
    if (tries > 0 && !road.alive()) {
      queue.ended(request.reader(), bytes);
      try {
        await(request, tries);
      } catch (final RuntimeException | OutOfMemoryError e) {
        tell(request.answer(), Wire.refusal(e));
      }
      return;
    }
    ByteBuffer words;
    try {
      words = start(request, bytes, road).answer();
    } catch (final RuntimeException | OutOfMemoryError e) {
      LOG.debug("blocks cannot be sent", e);
      queue.ended(request.reader(), bytes);
      words = Wire.refusal(e);
    }
    tell(request.answer(), words);
  }

  /**
   * The lease is looked for when it is its turn: what only waits holds nothing more than that.
   *
   * @return what is under way; with the last of it the place in the queue is given back
   * @throws RuntimeException if nothing is sent; then nothing is held either, but the place
   */
  private MessageSender start(final Request request, final long bytes, final Road road) {
    final SentReader reader = request.reader();
    final ServedLease lease = reader.find(request.lease());
    if (lease == null) {
      throw ended();
    }
    try (Undo undo = new Undo(() -> end(request, lease))) {
      final Packing packing = new Packing(lease, slabs, carrier.sizes());
      undo.add(packing);
      lease.bringToHost(devices, conf.device().timeout());
      final List<MessageSender.Message> messages = packing.messages();
      // The carrier's thread is the one that knows the end, and must not wait for memory to be
      // freed.
      final MessageSender sending =
          new MessageSender(
              road,
              request.transfer(),
              messages,
              carrier.sizes().atOnce(),
              failure -> inBackground(() -> sent(request, bytes, lease, packing)));
      undo.done();
      reader.sends(request.transfer());
      sending.start();
      return sending;
    }
  }

  private static void end(final Request request, final ServedLease lease) {
    lease.release();
    request.reader().drop(request.lease());
  }

  private void sent(
      final Request request, final long bytes, final ServedLease lease, final Packing packing) {
    request.reader().sent(request.transfer());
    try (Undo ending = new Undo(() -> end(request, lease))) {
      ending.add(packing);
    } catch (final RuntimeException e) {
      ShuffleCode.SENT_NOT_FREED
          .says("cannot release the memory of blocks that were sent to a reader")
          .warn(LOG, e);
    }
    queue.ended(request.reader(), bytes);
  }

  /** Bytes of the windows that are being sent. */
  public long bytes() {
    return queue.bytes();
  }

  /**
   * A queue of requests that are to be sent to readers, a few at once. Each of those holds copies
   * of small blocks, and of those in GPU memory, until the reader has them. Readers take turns, so
   * that one with many requests keeps nobody waiting for more than one of its own; all together
   * have no more bytes than a limit, but for one alone that has more; and none may have all places
   * or bytes, but by one request, so that one that takes nothing does not stop the others (two such
   * hold all places, until their leases end). Each step costs the same for any number of readers.
   * Thread safe.
   */
  static final class SendQueue {
    private static final Logger LOG = LoggerFactory.getLogger(SendQueue.class);
    static final int AT_ONCE = 8;

    /** Places that one reader may have: two are left for others. */
    static final int MAX_OF_ONE = 6;

    private final Executor executor;
    private final long mostBytes;
    private final long mostBytesOfOne;

    /** By reader; those that have nothing here are not in it. */
    private final Map<Object, Line> lines = new HashMap<>();

    /** Lines with a request that may begin now, in the order of their turns. */
    private final Deque<Line> turns = new ArrayDeque<>();

    private int underWay;
    private long bytes;

    /** A request that is to be sent. */
    private record Entry(long bytes, Runnable begin) {}

    /** One reader's requests. */
    private final class Line {
      private final Deque<Entry> waiting = new ArrayDeque<>();
      private int underWay;
      private long bytes;

      boolean mayBegin() {
        return !waiting.isEmpty()
            && underWay < MAX_OF_ONE
            && (underWay == 0 || waiting.peek().bytes() <= mostBytesOfOne - bytes);
      }
    }

    /**
     * @param mostBytes of all that are under way
     */
    SendQueue(final Executor executor, final long mostBytes) {
      this.executor = executor;
      this.mostBytes = mostBytes;
      this.mostBytesOfOne = mostBytes / AT_ONCE * MAX_OF_ONE;
    }

    /**
     * Has a request begun when it is its turn; its sender then says when it has {@link #ended}.
     *
     * @param reader whom it is for
     * @param size in bytes
     */
    void submit(final Object reader, final long size, final Runnable begin) {
      synchronized (this) {
        final Line line = lines.computeIfAbsent(reader, first -> new Line());
        final boolean hadTurn = line.mayBegin();
        line.waiting.add(new Entry(size, begin));
        if (!hadTurn && line.mayBegin()) {
          turns.add(line);
        }
      }
      beginNext();
    }

    /** What was begun for a reader, of so many bytes, has ended. */
    void ended(final Object reader, final long size) {
      synchronized (this) {
        underWay--;
        bytes -= size;
        final Line line = Objects.requireNonNull(lines.get(reader), "nothing was begun for it");
        final boolean hadTurn = line.mayBegin();
        line.underWay--;
        line.bytes -= size;
        if (!hadTurn && line.mayBegin()) {
          turns.add(line);
        }
        if (line.underWay == 0 && line.waiting.isEmpty()) {
          lines.remove(reader);
        }
      }
      // What has ended may have kept several that are smaller from beginning.
      boolean begun = true;
      while (begun) {
        begun = beginNext();
      }
    }

    /** Bytes that are under way. */
    synchronized long bytes() {
      return bytes;
    }

    /** Readers that have something here. */
    synchronized int readers() {
      return lines.size();
    }

    /** Begins the one whose turn it is, unless it has to wait; says whether it did. */
    private boolean beginNext() {
      final Entry next;
      synchronized (this) {
        final Line line = underWay == AT_ONCE ? null : turns.peek();
        if (line == null || (underWay > 0 && line.waiting.peek().bytes() > mostBytes - bytes)) {
          return false;
        }
        turns.poll();
        next = line.waiting.poll();
        underWay++;
        line.underWay++;
        line.bytes += next.bytes();
        bytes += next.bytes();
        if (line.mayBegin()) {
          turns.add(line);
        }
      }
      try {
        executor.execute(next.begin());
      } catch (final RejectedExecutionException e) {
        // This executor is shutting down: the connection that an answer would go by is closed.
        LOG.debug("nothing more is sent", e);
      }
      return true;
    }
  }

  /**
   * Sends the messages of one transfer to a reader, a few concurrently. Any thread may be the one
   * that sends the next.
   */
  static final class MessageSender {
    private final Road to;
    private final long transfer;
    private final List<Message> messages;
    private final int atOnce;
    private final Consumer<@Nullable String> end;
    private int next;
    private int underWay;
    private @Nullable String failure;
    private boolean ended;

    /** Bytes of this process that go to an offset of the transfer. */
    record Message(long offset, long address, long bytes) {}

    /**
     * @param atOnce how many are under way at a time
     * @param end called once, when none is under way any more, with the reason unless all were sent
     */
    MessageSender(
        final Road to,
        final long transfer,
        final List<Message> messages,
        final int atOnce,
        final Consumer<@Nullable String> end) {
      this.to = to;
      this.transfer = transfer;
      this.messages = messages;
      this.atOnce = atOnce;
      this.end = end;
    }

    void start() {
      sendMore();
    }

    /** Bytes of all messages. */
    long bytes() {
      return messages.stream().mapToLong(Message::bytes).sum();
    }

    /** Returns the reason why not all messages are sent; absent while they are. */
    synchronized @Nullable String failure() {
      return failure;
    }

    /**
     * Returns the response with the number of bytes; a refusal if it is known that they will not
     * come, for which the reader would wait.
     */
    ByteBuffer answer() {
      final String failed = failure();
      return failed == null
          ? Wire.granted(Long.BYTES).putLong(bytes()).flip()
          : Wire.refusal(new CarrierException("the blocks cannot be sent: " + failed, null));
    }

    private void sendMore() {
      final List<Message> now = new ArrayList<>();
      synchronized (this) {
        while (failure == null && next < messages.size() && underWay < atOnce) {
          now.add(messages.get(next++));
          underWay++;
        }
      }
      for (final Message message : now) {
        send(message);
      }
      finish();
    }

    /** A message that cannot even be begun has failed, like one that got lost. */
    private void send(final Message message) {
      try {
        to.send(transfer, message.offset(), message.address(), message.bytes(), this::sent);
      } catch (final RuntimeException | OutOfMemoryError e) { // Of direct memory, mostly.
        sent(String.valueOf(e.getMessage()));
      }
    }

    private void sent(final @Nullable String failed) {
      synchronized (this) {
        underWay--;
        failure = failure == null ? failed : failure;
      }
      sendMore();
    }

    private void finish() {
      synchronized (this) {
        if (ended || underWay > 0 || (failure == null && next < messages.size())) {
          return;
        }
        ended = true;
      }
      if (failure != null) {
        to.lost(transfer); // The reader may have been told already that they come.
      }
      end.accept(failure);
    }
  }
}
