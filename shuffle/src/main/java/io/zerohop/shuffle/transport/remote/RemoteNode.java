package io.zerohop.shuffle.transport.remote;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Threads;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.Self;
import io.zerohop.shuffle.transport.remote.RemoteService.BlockHolder;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An executor's part of one way between nodes: the owners that it reads by it, and the readers
 * elsewhere that it serves. Thread safe; owns both.
 *
 * @param <R> readers that are served
 * @param <P> owners that are read
 */
public abstract class RemoteNode<R extends ServedReader, P extends RemotePeer>
    implements AutoCloseable {
  protected final RemotePeers<P> peers;
  protected final RemoteThreads threads;
  protected final Slabs slabs;
  private final RemoteService<R> service;
  private volatile boolean alive = true;

  /**
   * @param slabs that bytes are received in; {@link #free} frees them
   */
  protected RemoteNode(
      final RemotePeers<P> peers,
      final RemoteService<R> service,
      final RemoteThreads threads,
      final Slabs slabs) {
    this.peers = peers;
    this.service = service;
    this.threads = threads;
    this.slabs = slabs;
  }

  /**
   * Makes a node, or says in the log why it cannot be used here: blocks can go another way.
   *
   * @param unavailable begins what the log says
   * @param debug is what it says above the stack trace
   * @param making makes it, and pushes how to undo what it has begun; gives none if it has said
   *     itself why there is none
   * @return absent if there is none; all that was begun is undone then
   */
  protected static <N> @Nullable N begin(
      final Message unavailable,
      final String debug,
      final Logger log,
      final Function<Deque<Runnable>, @Nullable N> making) {
    final Deque<Runnable> begun = new ArrayDeque<>();
    N node = null;
    try {
      node = making.apply(begun);
    } catch (final RuntimeException | LinkageError | OutOfMemoryError e) {
      // Whatever it is, blocks can go another way. Netty says by an error that there is no thread.
      unavailable.because(e).info(log);
      log.debug(debug, e);
    } finally {
      if (node == null) {
        begun.forEach(Runnable::run); // The last one first.
      }
    }
    return node;
  }

  /** Makes what serves readers. */
  protected static <R extends ServedReader> RemoteService<R> service(
      final Config conf,
      final Self self,
      final RemoteService.CarrierAnswers<R> answers,
      final BlockHolder holder,
      final RemoteThreads threads) {
    return new RemoteService<>(
        self.incarnation(),
        answers,
        holder,
        conf.readyTimeout(),
        self.clock(),
        threads.answers(),
        threads.sends());
  }

  /**
   * Makes sure that an owner can be read, which takes a limited time when it is met for the first
   * time or was lost.
   *
   * @throws io.zerohop.device.exchange.ExchangeException if it cannot be asked
   * @throws io.zerohop.shuffle.transport.remote.CarrierException if its blocks cannot come this way
   */
  public void connect(final BlockSource source) {
    peers.connect(source);
  }

  /** Returns whether an owner is connected. */
  public final boolean isConnected(final Location location) {
    return peers.connected(location) != null;
  }

  /** Returns whether an owner was connected before. */
  public final boolean hasMet(final Location location) {
    return peers.hasMet(location);
  }

  /**
   * Returns an owner that was connected.
   *
   * @throws ZerohopException (RETRY) if it is not any more
   */
  protected final P peerOf(final BlockSource source) {
    final P peer = peers.connected(source.knownLocation());
    if (peer == null) {
      throw new ZerohopException(
          ZerohopException.Category.RETRY,
          "the connection to executor " + source.executorId() + " was lost");
    }
    return peer;
  }

  /** Small chores that nobody waits for. */
  public void maintain() {
    peers.check();
    service.maintain();
    threads.maintain();
    slabs.trim();
  }

  /** Owners on other nodes that are connected. */
  public final int connected() {
    return peers.connected();
  }

  /** Readers on other nodes that are connected. */
  public final int readers() {
    return service.readers();
  }

  /** Leases that readers on other nodes hold here. */
  public final int leases() {
    return service.leases();
  }

  /** What came here from outside and belongs to nothing: connections, or messages. */
  public abstract long strangers();

  /** Pieces of host memory that bytes pass through now, each shared by many blocks. */
  public final int slabsTaken() {
    return slabs.taken();
  }

  /** Returns whether this node's memory may still be read or written although it was closed. */
  public final boolean isAlive() {
    return alive;
  }

  /** Ends what is under way, both ways, and frees everything. Takes a limited time. Idempotent. */
  @Override
  public final void close() {
    peers.close();
    alive = !end();
    if (!alive) {
      service.close();
      free();
    }
  }

  /**
   * Ends what moves bytes, and the threads.
   *
   * @return false, which is said in the log, if something may still use this node's memory
   */
  protected abstract boolean end();

  /** Frees what nothing uses any more. */
  protected abstract void free();

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
    private static final int CONNECTING = 2;

    /** Each may wait for a GPU, or compute checksums and compress at some GB/s. */
    private static final int MAX_WORKING = 4;

    private static final long IDLE_SECONDS = 30;
    private static final Duration STOP_LIMIT = Duration.ofSeconds(10);

    private final ThreadPoolExecutor transfers;
    private final ThreadPoolExecutor answers = pool("answers", ANSWERING);
    private final ThreadPoolExecutor connects = pool("connects", CONNECTING);
    private final ThreadPoolExecutor sends;
    private final List<ThreadPoolExecutor> all;

    /** Starts none yet. */
    public RemoteThreads() {
      final int working =
          Math.max(2, Math.min(MAX_WORKING, Runtime.getRuntime().availableProcessors() / 4));
      transfers = pool("transfers", working);
      sends = pool("sends", working);
      all = List.of(transfers, answers, connects, sends);
    }

    private static ThreadPoolExecutor pool(final String name, final int threads) {
      final ThreadPoolExecutor pool =
          new ThreadPoolExecutor(
              threads,
              threads,
              IDLE_SECONDS,
              TimeUnit.SECONDS,
              new LinkedBlockingQueue<>(),
              task -> Threads.daemon(task, "zerohop-" + name));
      pool.allowCoreThreadTimeOut(true);
      return pool;
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

    /** For first contact with those that ask. */
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
