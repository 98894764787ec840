package io.zerohop.shuffle.transport.remote;

import io.zerohop.device.Signal;
import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Threads;
import io.zerohop.shuffle.catalog.Catalog.OwnOutput;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.ControlChannel.ControlService;
import io.zerohop.shuffle.transport.Self;
import io.zerohop.shuffle.transport.remote.ServedReader.ServedLease;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The owner's side: tells readers where blocks lie, and holds them in the meantime. See {@link
 * Wire} for what can be asked; each way between nodes answers more. Leases are those of blocks that
 * are sent and of those that are got by UCX. Thread safe.
 *
 * @param <R> what is kept of a reader
 */
public abstract class RemoteService<R extends ServedReader> implements ControlService {
  private static final Logger LOG = LoggerFactory.getLogger(RemoteService.class);

  /** A reader that has not passed by then is taken for one that never will. */
  static final Duration LEASE_LIMIT = Duration.ofMinutes(5);

  /** How long memory stays for a reader that is gone: what it had asked for may still be read. */
  private static final Duration GRACE = Duration.ofSeconds(10);

  protected final Config conf;
  protected final Clock clock;
  private final long incarnation;
  private final BlockHolder holder;
  private final Executor quick;
  private final Executor slow;
  private final Map<Long, R> readers = new ConcurrentHashMap<>();
  private final Queue<ServedLease> left = new ConcurrentLinkedQueue<>();

  /** Requests for blocks whose copies have not ended: threads that answer do not wait for a GPU. */
  private final Queue<Waiting<R>> waiting = new ConcurrentLinkedQueue<>();

  private final AtomicLong nextLease = new AtomicLong();
  private final LeaseRoom room;

  /**
   * A request that is answered when its blocks are there.
   *
   * @param due when it is given up
   */
  private record Waiting<R extends ServedReader>(
      R reader, ServedLease lease, Consumer<ByteBuffer> answer, long due) {}

  /**
   * @param conf says how long copies of map outputs that are published may take
   * @param self which life of this executor answers, and the clock by which leases end
   * @param quick answers, which takes no time but more than a channel's thread should
   * @param slow lets go of what readers had
   */
  protected RemoteService(
      final Config conf,
      final Self self,
      final BlockHolder holder,
      final Executor quick,
      final Executor slow) {
    this.conf = conf;
    this.clock = self.clock();
    this.incarnation = self.incarnation();
    this.holder = holder;
    this.quick = quick;
    this.slow = slow;
    this.room = LeaseRoom.of(conf, Runtime.getRuntime().maxMemory());
  }

  /**
   * Returns what is kept of a reader that has just come.
   *
   * @param left takes over leases that it does not end itself
   */
  protected abstract R reader(Consumer<ServedLease> left);

  /**
   * Returns the end of the response to a reader that introduces itself.
   *
   * @param address where bytes are sent to it; empty if none are
   * @param gpu whether the reader would get GPU memory
   */
  protected abstract byte[] hello(R reader, byte[] address, boolean gpu);

  /**
   * Answers a question that only this way has, now or later. Called on a thread that may take some
   * time, but not wait.
   *
   * @param kind names the question
   * @param question what follows, to be kept by nobody
   * @param answer to be called once
   * @throws RuntimeException to refuse; the words travel to the reader
   */
  protected abstract void answer(
      byte kind, ByteBuffer question, R reader, Consumer<ByteBuffer> answer);

  @Override
  public final void asked(
      final long link, final ByteBuffer question, final Consumer<ByteBuffer> answer) {
    final ByteBuffer copy = ByteBuffer.allocate(question.remaining()).put(question).flip();
    final R reader = readers.computeIfAbsent(link, first -> reader(left::add));
    quick.execute(() -> answerOrRefuse(reader, copy, answer));
  }

  /** Without an answer the reader would wait until its limit. */
  private void answerOrRefuse(
      final R reader, final ByteBuffer question, final Consumer<ByteBuffer> answer) {
    try {
      answer(reader, question, answer);
    } catch (final RuntimeException | OutOfMemoryError e) {
      LOG.debug("a request of a reader cannot be answered", e);
      tell(answer, Wire.refusal(e));
    }
  }

  private void answer(
      final R reader, final ByteBuffer question, final Consumer<ByteBuffer> answer) {
    final byte kind = question.get();
    switch (kind) {
      case Wire.HELLO -> answer.accept(hello(reader, question));
      case Wire.PING -> answer.accept(Wire.granted(0).flip());
      case Wire.OPEN -> open(reader, question, answer);
      case Wire.CLOSE ->
          answer.accept(
              Wire.granted(1).put((byte) (reader.drop(question.getLong()) ? 1 : 0)).flip());
      default -> answer(kind, question, reader, answer);
    }
  }

  private ByteBuffer hello(final R reader, final ByteBuffer question) {
    if (question.getInt() != Wire.VERSION) {
      throw new IllegalArgumentException(
          "the executors run different versions of Zerohop; give all the same jar");
    }
    final byte[] rest = hello(reader, Wire.bytes(question), question.get() != 0);
    final ByteBuffer answer = Wire.granted(4 + 8 + rest.length);
    return answer.putInt(Wire.VERSION).putLong(incarnation).put(rest).flip();
  }

  private void open(final R reader, final ByteBuffer question, final Consumer<ByteBuffer> answer) {
    final ServedLease lease = ServedLease.of(holder, question.getInt(), question, room, clock);
    if (lease.isReady()) {
      answer.accept(grant(reader, lease));
    } else {
      waiting.add(new Waiting<>(reader, lease, answer, clock.in(conf.readyTimeout())));
    }
  }

  /** Hands the lease to the reader, or lets it go if that fails. */
  private ByteBuffer grant(final R reader, final ServedLease lease) {
    try (Undo undo = new Undo(lease::release)) {
      final long id = nextLease.incrementAndGet();
      final ByteBuffer answer = Wire.granted(8 + lease.extents().encodedBytes()).putLong(id);
      lease.extents().write(answer);
      undo.done();
      reader.hold(id, lease);
      return answer.flip();
    }
  }

  /** Answers requests whose blocks are there by now, or never will be. */
  @SuppressWarnings("ModifyCollectionInEnhancedForLoop") // A concurrent queue.
  private void answerWaiting() {
    for (final Waiting<R> next : waiting) {
      final boolean over =
          next.reader().isGone() || next.lease().hasFailed() || clock.isOver(next.due());
      if ((over || next.lease().isReady()) && waiting.remove(next)) {
        inBackground(quick, () -> settle(next));
      }
    }
  }

  private void settle(final Waiting<R> next) {
    ByteBuffer words;
    if (next.lease().isReady()) {
      try {
        words = grant(next.reader(), next.lease());
      } catch (final RuntimeException | OutOfMemoryError e) {
        words = Wire.refusal(e);
      }
    } else {
      next.lease().release();
      words = Wire.refusal(new IllegalStateException("copies of a map output have not ended"));
    }
    tell(next.answer(), words);
  }

  /** A reader that is gone needs no answer, and one that was answered gets no second one. */
  static void tell(final Consumer<ByteBuffer> answer, final ByteBuffer words) {
    try {
      answer.accept(words);
    } catch (final RuntimeException e) {
      LOG.debug("a response was not accepted", e);
    }
  }

  /** Runs what takes long on another thread, if one is available. */
  final void inBackground(final Runnable chore) {
    inBackground(slow, chore);
  }

  private static void inBackground(final Executor executor, final Runnable chore) {
    try {
      executor.execute(chore);
    } catch (final RejectedExecutionException e) {
      chore.run(); // This executor is shutting down.
    }
  }

  /**
   * Answers requests that waited for copies, and ends what readers take too long for and what those
   * who are gone have left. To be called some ten times a second.
   */
  @SuppressWarnings("ModifyCollectionInEnhancedForLoop") // A concurrent queue.
  public final void maintain() {
    answerWaiting();
    readers.values().forEach(reader -> reader.expire(LEASE_LIMIT.toNanos()));
    for (final ServedLease lease : left) {
      // Not counted any more when its memory is free; close() may have taken it meanwhile.
      if (lease.leftNanos() > GRACE.toNanos() && left.remove(lease)) {
        lease.release();
      }
    }
  }

  /** Readers that are connected and have asked something. */
  public final int readers() {
    return readers.size();
  }

  /** Leases that readers hold here. */
  public final int leases() {
    return waiting.size()
        + left.size()
        + readers.values().stream().mapToInt(ServedReader::leases).sum();
  }

  @Override
  public final void disconnected(final long link) {
    final R reader = readers.remove(link);
    if (reader != null) {
      inBackground(reader::close);
    }
  }

  /** Ends all leases. What reads the memory must have ended. */
  public final void close() {
    readers.values().forEach(ServedReader::close);
    readers.clear();
    for (Waiting<R> next = waiting.poll(); next != null; next = waiting.poll()) {
      next.lease().release();
    }
    for (ServedLease lease = left.poll(); lease != null; lease = left.poll()) {
      lease.release();
    }
  }

  /** Finds an owner's map outputs. Thread safe. */
  public interface BlockHolder {

    /**
     * A map output, complete or not, retained for the caller to release; absent if it is not held
     * in memory.
     *
     * @see OwnOutput#retain
     */
    @Nullable OwnOutput retain(int shuffleId, long mapId);

    /** The word that says when a map output is complete, at {@link OwnOutput#READY_EPOCH}. */
    Signal ready(OwnOutput retained);
  }

  /**
   * The threads that serve other executors: for own transfers, for responses, and for slow work, so
   * that none waits for another. They come with the work and go after half a minute without, except
   * that work for which the system has no thread left is done by one that is there, or else by
   * {@link #maintain}: the carrier's own threads, which hand most of it over, must not do it.
   * Thread safe.
   */
  public static final class RemoteThreads implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(RemoteThreads.class);

    /** Answers are short. */
    private static final int ANSWERING = 2;

    /** Each waits up to some seconds for an executor that does not accept. */
    private static final int CONNECTING = 4;

    /** Each may wait for a GPU, or compute checksums and compress at some GB/s. */
    private static final int MAX_WORKING = 4;

    private static final Duration IDLE = Duration.ofSeconds(30);
    private static final Duration STOP_LIMIT = Duration.ofSeconds(10);

    private final ThreadPoolExecutor transfers;
    private final ThreadPoolExecutor answers = Threads.pool("answers", ANSWERING, IDLE);
    private final ThreadPoolExecutor connects = Threads.pool("connects", CONNECTING, IDLE);
    private final ThreadPoolExecutor sends;
    private final List<ThreadPoolExecutor> all;

    /** Starts none yet. */
    public RemoteThreads() {
      final int working =
          Math.max(2, Math.min(MAX_WORKING, Runtime.getRuntime().availableProcessors() / 4));
      transfers = Threads.pool("transfers", working, IDLE);
      sends = Threads.pool("sends", working, IDLE);
      all = List.of(transfers, answers, connects, sends);
    }

    private static void hand(final ThreadPoolExecutor pool, final Runnable task) {
      try {
        pool.execute(task);
      } catch (final ZerohopException e) {
        LOG.debug("no thread is left to serve other executors", e);
        if (!pool.getQueue().contains(task)) {
          pool.getQueue().add(task);
        }
      }
    }

    /** Does what no thread is there for, in the caller's. To be called often. */
    public void maintain() {
      all.forEach(RemoteThreads::doLeft);
    }

    private static void doLeft(final ThreadPoolExecutor pool) {
      while (pool.getPoolSize() == 0) {
        final Runnable task = pool.getQueue().poll();
        if (task == null) {
          return;
        }
        task.run();
      }
    }

    public Executor transfers() {
      return task -> hand(transfers, task);
    }

    public Executor answers() {
      return task -> hand(answers, task);
    }

    public Executor sends() {
      return task -> hand(sends, task);
    }

    /** Connects to those that ask: with those that send, one that is gone would hold up others. */
    public Executor connects() {
      return task -> hand(connects, task);
    }

    /** Lets them do what was handed over, for a limited time, and ends them. Idempotent. */
    @Override
    public void close() {
      all.forEach(ThreadPoolExecutor::shutdown);
      maintain();
      all.forEach(RemoteThreads::awaitEnd);
    }

    /** Also for a caller that was interrupted: what the threads use is freed behind this. */
    private static void awaitEnd(final ThreadPoolExecutor executor) {
      if (!Deadline.in(STOP_LIMIT)
          .await(
              executor::isTerminated,
              millis -> executor.awaitTermination(millis, TimeUnit.MILLISECONDS))) {
        ShuffleCode.SERVING_NOT_ENDED
            .says("threads that serve other nodes did not end at shutdown")
            .at(String.valueOf(executor))
            .warn(LOG);
      }
    }
  }
}
