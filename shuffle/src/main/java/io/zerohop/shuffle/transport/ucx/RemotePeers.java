package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.WaitException;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.shuffle.Location;
import io.zerohop.shuffle.NodeConfig;
import io.zerohop.shuffle.transport.ControlChannel;
import io.zerohop.shuffle.transport.ControlLink;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The owners on other nodes that this executor reads, each connected when a reader first needs it
 * and again after it was lost. Thread safe; owns the peers.
 */
final class RemotePeers implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(RemotePeers.class);
  private static final Duration FIRST_PAUSE = Duration.ofSeconds(1);
  private static final Duration LONGEST_PAUSE = Duration.ofSeconds(30);

  private final UcxEngine engine;
  private final ControlChannel channel;
  private final Slabs slabs;
  private final Arrivals arrivals;
  private final TestRange gpuRange;
  private final boolean gpu;
  private final Duration connectLimit;
  private final Duration requestLimit;
  private final Duration deviceLimit;
  private final UcxMode mode;
  private final Map<Long, Contact> contacts = new ConcurrentHashMap<>();
  private volatile boolean closed;

  /** A get from GPU to GPU has failed, and may have taken the connection with it: none is tried. */
  private volatile boolean gpuFailed;

  /** An owner, met or not. */
  private static final class Contact {
    private final ReentrantLock lock = new ReentrantLock();
    private volatile RemotePeer peer;
    private boolean met;
    private int failures;
    private RuntimeException failure;
    private long retryAt;
  }

  /**
   * @param gpuRange null where UCX does not reach GPU memory
   * @param gpu whether there is a GPU
   */
  RemotePeers(
      final UcxEngine engine,
      final ControlChannel channel,
      final Slabs slabs,
      final Arrivals arrivals,
      final TestRange gpuRange,
      final boolean gpu,
      final NodeConfig config) {
    this.engine = engine;
    this.channel = channel;
    this.slabs = slabs;
    this.arrivals = arrivals;
    this.gpuRange = gpuRange;
    this.gpu = gpu;
    this.connectLimit = config.connectLimit();
    this.requestLimit = config.requestLimit();
    this.deviceLimit = config.deviceLimit();
    this.mode = config.ucxMode();
  }

  /** The owner if it is connected; else null. Does not wait. */
  RemotePeer connected(final Location location) {
    final Contact contact = contacts.get(location.incarnation());
    final RemotePeer peer = contact == null ? null : contact.peer;
    return peer != null && peer.alive() ? peer : null;
  }

  /** Whether the owner was connected before: then it is dead if nobody answers any more. */
  boolean hasMet(final Location location) {
    final Contact contact = contacts.get(location.incarnation());
    return contact != null && contact.met;
  }

  /**
   * Connects to an owner unless it is. Waits for a limited time.
   *
   * @throws ExchangeException as {@link ControlChannel#connect} does
   * @throws UcxException if UCX cannot read its memory
   * @throws WaitException (RETRY) if interrupted
   */
  RemotePeer connect(final Location location, final String host, final String executorId) {
    final Contact contact =
        contacts.computeIfAbsent(location.incarnation(), first -> new Contact());
    final RemotePeer known = connected(location);
    if (known != null) {
      return known;
    }
    lock(contact, executorId);
    try {
      if (contact.peer != null && contact.peer.alive()) {
        return contact.peer;
      }
      if (contact.failure != null && System.nanoTime() - contact.retryAt < 0) {
        throw contact.failure;
      }
      contact.peer = openTwice(location, host, executorId);
      contact.met = true;
      contact.failures = 0;
      contact.failure = null;
      return contact.peer;
    } catch (final WaitException e) {
      throw e;
    } catch (final RuntimeException e) {
      if (Thread.currentThread().isInterrupted()) {
        throw cancelled(executorId); // That says nothing of the owner.
      }
      final RuntimeException why =
          e instanceof ExchangeException || e instanceof UcxException
              ? e
              : new UcxException("executor " + executorId + " cannot be read: " + e, e);
      remember(contact, why);
      throw why;
    } finally {
      contact.lock.unlock();
    }
  }

  private static void remember(final Contact contact, final RuntimeException failure) {
    final long pause =
        Math.min(
            LONGEST_PAUSE.toNanos(),
            FIRST_PAUSE.toNanos() << Math.min(contact.failures, Long.SIZE / 4));
    contact.failures++;
    contact.failure = failure;
    contact.retryAt = System.nanoTime() + pause;
  }

  private void lock(final Contact contact, final String executorId) {
    try {
      final long most = connectLimit.plus(requestLimit.multipliedBy(4)).toNanos();
      if (contact.lock.tryLock(most, TimeUnit.NANOSECONDS)) {
        return;
      }
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw cancelled(executorId);
    }
    throw new ExchangeException(
        Reason.BUSY, "another thread is still connecting to executor " + executorId);
  }

  private static WaitException cancelled(final String executorId) {
    return new WaitException(
        WaitException.Reason.CANCELLED, "interrupted while connecting to executor " + executorId);
  }

  /**
   * Tries again at once if UCX is what failed, and failed soon: when both ends connect to each
   * other at the same moment one of the connections may break. A silent peer has cost enough.
   */
  private RemotePeer openTwice(
      final Location location, final String host, final String executorId) {
    final long begin = System.nanoTime();
    try {
      return open(location, host, executorId);
    } catch (final UcxException e) {
      if (System.nanoTime() - begin > requestLimit.toNanos() / 2
          || Thread.currentThread().isInterrupted()) {
        throw e;
      }
      LOG.info("executor {} is tried again: {}", executorId, e.getMessage());
      return open(location, host, executorId);
    }
  }

  private RemotePeer open(final Location location, final String host, final String executorId) {
    if (closed) {
      throw new ExchangeException(Reason.CLOSED, "this executor is shutting down");
    }
    final ControlLink link = channel.connect(host, location.port(), connectLimit);
    final RemotePeer peer = new RemotePeer(executorId, link);
    boolean done = false;
    try {
      final ByteBuffer answer = hello(peer, executorId);
      if (answer.getInt() != Wire.VERSION || answer.getLong() != location.incarnation()) {
        throw new ExchangeException(
            Reason.REFUSED,
            "executor "
                + executorId
                + " is gone; another one answers at "
                + host
                + ":"
                + location.port());
      }
      final boolean rdma = answer.get() != 0;
      peer.endpoint(engine.connect(Wire.bytes(answer), peer::breakOff));
      final SelfTest.Targets targets =
          new SelfTest.Targets(rdma, TestTarget.read(answer), TestTarget.read(answer));
      final Slab gpuSlab = gpuSlab();
      final SelfTest test = SelfTest.run(peer, targets, slabs, gpuSlab, arrivals, requestLimit);
      peer.byMessage(mode == UcxMode.MESSAGE || (mode == UcxMode.AUTO && test.byMessage()));
      gpuFailed |= test.gpuRate() < 0;
      final GpuReach reach = reach(test, gpuSlab);
      peer.direct(reach == GpuReach.DIRECT);
      LOG.info(
          "executor {} at {}:{} is read by UCX{}: {}",
          executorId,
          host,
          location.port(),
          mode == UcxMode.AUTO ? "" : " (spark.zerohop.ucx.mode=" + mode.label() + ")",
          test.describe(peer.byMessage(), reach));
      done = true;
      return peer;
    } finally {
      if (!done) {
        peer.breakOff("it could not be connected");
      }
    }
  }

  /** Null if there is no GPU memory for a test, which must not keep anybody from the rest. */
  private Slab gpuSlab() {
    try {
      return gpuRange == null || gpuFailed ? null : gpuRange.slab();
    } catch (final ZerohopException e) {
      LOG.debug("no GPU memory for a test", e);
      return null;
    }
  }

  private GpuReach reach(final SelfTest test, final Slab gpuSlab) {
    if (!gpu) {
      return GpuReach.NO_GPU;
    }
    if (gpuRange == null) {
      return GpuReach.NOT_HERE;
    }
    if (mode == UcxMode.MESSAGE) {
      return GpuReach.FORBIDDEN;
    }
    if (gpuFailed) {
      return GpuReach.FAILED;
    }
    if (gpuSlab == null) {
      return GpuReach.NO_ROOM;
    }
    if (test.gpuRate() == 0) {
      return GpuReach.NOT_THERE;
    }
    return mode == UcxMode.GET || test.direct() ? GpuReach.DIRECT : GpuReach.EMULATED;
  }

  private ByteBuffer hello(final RemotePeer peer, final String executorId) {
    final byte[] own = engine.address();
    final ByteBuffer question = ByteBuffer.allocate(10 + own.length);
    question.put(Wire.HELLO).putInt(Wire.VERSION);
    Wire.put(question, own);
    question.put((byte) (gpuRange == null ? 0 : 1));
    try {
      return peer.ask(question.flip()).get(requestLimit.toMillis(), TimeUnit.MILLISECONDS);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new ExchangeException(Reason.CLOSED, "interrupted while connecting", e);
    } catch (final TimeoutException e) {
      throw new ExchangeException(
          Reason.TIMEOUT, "executor " + executorId + " does not introduce itself", e);
    } catch (final ExecutionException e) {
      if (e.getCause() instanceof ExchangeException known) {
        throw known;
      }
      throw new ExchangeException(Reason.PROTOCOL, e.getCause().getMessage(), e);
    }
  }

  /** Gives up peers from which nothing comes although something should. */
  void checkStalled() {
    final long nanos = requestLimit.toNanos() / 2;
    final long ofTransfer = Math.max(nanos, deviceLimit.toNanos());
    for (final Contact contact : contacts.values()) {
      final RemotePeer peer = contact.peer;
      if (peer != null) {
        peer.checkStalled(nanos, ofTransfer);
      }
    }
  }

  @Override
  public void close() {
    closed = true;
    for (final Contact contact : contacts.values()) {
      final RemotePeer peer = contact.peer;
      if (peer != null) {
        peer.close();
      }
    }
  }
}
