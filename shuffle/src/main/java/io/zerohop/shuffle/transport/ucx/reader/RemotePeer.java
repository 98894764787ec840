package io.zerohop.shuffle.transport.ucx.reader;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.transport.ControlLink;
import io.zerohop.shuffle.transport.ucx.engine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.fabric.FabricImports;
import io.zerohop.shuffle.transport.ucx.wire.Questions;
import io.zerohop.shuffle.transport.ucx.wire.Wire;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A connected owner on another node: the link to ask it, the endpoint to get from it, and the keys
 * of its segments. Once anything of it breaks it is closed as a whole and made anew for the next
 * reader. Thread safe; owns link and endpoint.
 */
public final class RemotePeer implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(RemotePeer.class);

  private final String name;
  private final ControlLink link;
  private final Clock clock;

  /**
   * By the slot of the owner's segment table: what comes into a slot takes the place of a segment
   * that is gone, so there are never more keys than the owner can have segments.
   */
  private final Map<Integer, KnownKey> keys = new ConcurrentHashMap<>();

  private final Set<RemoteTransfer> transfers = ConcurrentHashMap.newKeySet();
  private final AtomicBoolean pinging = new AtomicBoolean();
  private volatile UcxEndpoint endpoint;
  private volatile Gets gets;
  private boolean byMessage;
  private boolean direct;
  private volatile long lastProgress;
  private volatile String broken;

  /** What is mapped of its GPU memory; null if it is not in this node's clique. */
  private FabricImports fabric;

  /**
   * What it takes to get from a segment.
   *
   * @param key empty if it can be sent only
   */
  record SegmentKey(long address, byte[] key) {}

  private record KnownKey(long segmentId, SegmentKey key) {}

  /**
   * @param clock by which it is idle, or silent
   */
  public RemotePeer(final String name, final ControlLink link, final Clock clock) {
    this.name = name;
    this.link = link;
    this.clock = clock;
    this.lastProgress = clock.nanos();
    link.onClosed(() -> breakOff("the connection to it was lost"));
  }

  /** Its worker was reached. */
  public void endpoint(final UcxEndpoint to) {
    endpoint = to;
    gets = new Gets(to);
    if (broken != null) {
      to.close();
    }
  }

  /** Whether its blocks come by message, since gets are slower. */
  public boolean byMessage() {
    return byMessage;
  }

  public void byMessage(final boolean slowGets) {
    byMessage = slowGets;
  }

  /** Whether blocks in its GPU's memory are got into that of this GPU as they are. */
  public boolean direct() {
    return direct;
  }

  public void direct(final boolean gpuToGpu) {
    direct = gpuToGpu;
  }

  /** Its GPU memory as an NVLink fabric shows it; null if it does not. */
  public synchronized FabricImports fabric() {
    return fabric;
  }

  /** It is in this node's clique; the first call counts. The mappings are closed with the peer. */
  public synchronized void fabric(final Supplier<FabricImports> clique) {
    if (fabric == null && broken == null) {
      fabric = clique.get();
    }
  }

  /** The clock by which transfers from it are idle. */
  public Clock clock() {
    return clock;
  }

  public String name() {
    return name;
  }

  public boolean alive() {
    return broken == null && link.alive();
  }

  /** Asks, and takes the answer apart: what follows the word that grants it. */
  public CompletableFuture<ByteBuffer> ask(final ByteBuffer question) {
    return link.ask(question)
        .thenApply(
            answer -> {
              progress();
              if (answer.get() != Wire.GRANTED) {
                throw new ZerohopException(
                    ZerohopException.Category.RETRY, Wire.TEXT.decode(answer).toString());
              }
              return answer;
            });
  }

  public Gets gets() {
    return gets;
  }

  /** What was kept of a segment; null if nothing was, or it is gone. */
  SegmentKey key(final long segmentId) {
    final KnownKey known = keys.get(SegmentIds.slot(segmentId));
    return known != null && known.segmentId() == segmentId ? known.key() : null;
  }

  void key(final long segmentId, final SegmentKey key) {
    keys.merge(
        SegmentIds.slot(segmentId),
        new KnownKey(segmentId, key),
        (old, young) -> old.segmentId() > young.segmentId() ? old : young);
  }

  /** Segments of which something is kept. */
  int keys() {
    return keys.size();
  }

  /** Something came. */
  public void progress() {
    lastProgress = clock.nanos();
  }

  void begin(final RemoteTransfer transfer) {
    if (transfers.isEmpty()) {
      progress();
    }
    transfers.add(transfer);
    final String why = broken;
    if (why != null) {
      transfer.fail(lost(why));
    }
  }

  void end(final RemoteTransfer transfer) {
    transfers.remove(transfer);
  }

  /**
   * Breaks it off if transfers are under way and it does not even answer a ping, and gives up
   * single transfers that get nowhere although it does.
   *
   * @param nanos how long it may say nothing at all
   * @param transferNanos how long a transfer may wait for its next byte
   */
  public void checkStalled(final long nanos, final long transferNanos) {
    if (transfers.isEmpty()) {
      return;
    }
    final long quiet = clock.since(lastProgress);
    if (quiet > nanos) {
      breakOff(
          "nothing came from it for "
              + nanos / 1_000_000
              + " ms (half of spark.zerohop.request.timeout)");
    } else if (quiet > nanos / 2 && pinging.compareAndSet(false, true)) {
      ask(Questions.ping()).whenComplete((answer, failure) -> pinging.set(false));
    }
    transfers.forEach(transfer -> transfer.checkStalled(transferNanos));
  }

  /**
   * Closes it if nothing was read from it for so long. Who is just about to read finds it closed,
   * and connects anew.
   */
  public void closeIdle(final long nanos) {
    if (transfers.isEmpty() && clock.since(lastProgress) > nanos) {
      breakOff("nothing was read from it for " + nanos / 1_000_000_000 + " s");
    }
  }

  /** Ends everything that is under way; readers connect anew, or find that the owner is dead. */
  public void breakOff(final String why) {
    synchronized (this) {
      if (broken != null) {
        return;
      }
      broken = why;
      if (fabric != null) {
        fabric.close();
      }
    }
    LOG.info(
        ShuffleCode.UCX_BROKEN_OFF.marked("executor {} is no longer read by UCX: {}"), name, why);
    // In this order: with the link the owner's leases end, and what is still asked for needs them.
    if (endpoint != null) {
      endpoint.close();
    }
    link.close();
    transfers.forEach(transfer -> transfer.fail(lost(why)));
  }

  private ZerohopException lost(final String why) {
    return new ZerohopException(
        ZerohopException.Category.RETRY,
        ShuffleCode.CONNECTION_LOST.marked("executor " + name + " was lost: " + why));
  }

  @Override
  public void close() {
    breakOff("this executor is shutting down");
  }
}
