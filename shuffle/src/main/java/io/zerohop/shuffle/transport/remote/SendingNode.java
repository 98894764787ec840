package io.zerohop.shuffle.transport.remote;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.Device;
import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.ContactListener;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.shuffle.transport.Self;
import io.zerohop.shuffle.transport.Transport;
import io.zerohop.shuffle.transport.Transport.Sink;
import io.zerohop.shuffle.transport.remote.Carrier.Arrivals;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierStarter;
import io.zerohop.shuffle.transport.remote.RemoteService.BlockHolder;
import io.zerohop.shuffle.transport.remote.RemoteService.RemoteThreads;
import io.zerohop.shuffle.transport.remote.Slabs.Slab;
import io.zerohop.shuffle.transport.remote.Wire.Questions;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An executor's part of path {@code sent}: sends its map outputs to readers elsewhere, and receives
 * those that others send. Thread safe; owns the carrier.
 */
public final class SendingNode extends RemoteNode<RemotePeer> {
  private static final Logger LOG = LoggerFactory.getLogger(SendingNode.class);

  private final Carrier carrier;
  private final Sends sends;
  private final ContactListener contacts;
  private final MessageReceiver arrivals = new MessageReceiver();

  private SendingNode(
      final Carrier carrier,
      final RemoteThreads threads,
      final Slabs slabs,
      final Sends sends,
      final Self self) {
    super(sends, threads, slabs);
    this.contacts = self.contacts();
    this.carrier = carrier;
    this.sends = sends;
    carrier.serve(arrivals, sends);
  }

  /**
   * Returns a limit for a reader without a next block that a request's wait for its turn at an
   * owner does not reach: the given one, or a minute more than the longest such wait.
   */
  public static Duration longerThanATurn(final Duration limit) {
    final Duration turn = RemoteService.LEASE_LIMIT.plusMinutes(1);
    return limit.compareTo(turn) > 0 ? limit : turn;
  }

  /**
   * Starts it, if there is a carrier, and the configuration has path {@code sent}.
   *
   * @param starter starts the carrier, if there is one
   * @param holder finds own map outputs
   * @return absent if there is none, or it cannot be used here, which is said once in the log
   */
  public static @Nullable SendingNode start(
      final Config conf,
      final Self self,
      final @Nullable CarrierStarter starter,
      final Devices devices,
      final BlockHolder holder) {
    if (starter == null || !conf.paths().contains(BlockPath.SENT)) {
      return null;
    }
    return begin(
        ShuffleCode.SENDING_UNAVAILABLE
            .says(
                "this executor neither sends nor receives blocks; those that are not read in place"
                    + " are staged")
            .at("executor " + self.executorId()),
        "why nothing is sent",
        LOG,
        begun -> {
          final Clock clock = self.clock();
          final Device device = devices.of(devices.hasGpu() ? Tier.DEVICE : Tier.HOST);
          final Slabs slabs = new Slabs(device::hostBuffer, conf.fetch().receiveBuffers(), clock);
          begun.add(slabs);
          final RemoteThreads threads = new RemoteThreads();
          begun.add(threads);
          final Carrier carrier = starter.start(threads, slabs, clock);
          begun.add(carrier::end);
          final Sends sends =
              new Sends(
                  conf,
                  self,
                  holder,
                  threads.answers(),
                  threads.sends(),
                  threads.connects(),
                  carrier,
                  slabs,
                  devices);
          final SendingNode node = new SendingNode(carrier, threads, slabs, sends, self);
          LOG.info(
              "executor {} sends its blocks to other nodes, {}",
              self.executorId(),
              carrier.describe());
          return node;
        });
  }

  /** Returns the transport of blocks to here, for any reader: they go to pinned host memory. */
  public Transport transport() {
    return (source, blocks, sink) ->
        arrivals.fetch(peerOf(source), blocks, sink, slabs, threads.transfers());
  }

  @Override
  public void maintain() {
    carrier.maintain();
    super.maintain();
  }

  /** Bytes that are being sent to readers now. */
  public long sendingBytes() {
    return sends.bytes();
  }

  /** Bytes, since the start, that compression has kept from the network. */
  public long savedBytes() {
    return carrier.savedBytes();
  }

  /** Messages that nobody here had asked for. */
  @Override
  public long strangers() {
    return carrier.strangers();
  }

  @Override
  protected boolean end() {
    final boolean ended = carrier.end();
    threads.close();
    if (!ended) {
      ShuffleCode.SENDING_NOT_ENDED
          .says("sends did not end at shutdown; their memory stays mapped")
          .warn(LOG);
    }
    return ended;
  }

  @Override
  protected void free() {
    slabs.close();
  }

  /**
   * Opens a link to an owner that sends, and introduces this executor, which shows that the owner
   * also reaches it.
   */
  @Override
  protected RemotePeer connectTo(final BlockSource source) {
    final ControlLink link = carrier.link(source, conf.connectTimeout());
    final String name = source.executorId();
    final RemotePeer peer =
        new RemotePeer(
            name, "what it sends (path 'sent')", ShuffleCode.SENDER_BROKEN_OFF, link, clock);
    try (Undo undo = new Undo(() -> peer.breakOff("it could not be connected"))) {
      peer.hello(
          Questions.hello(carrier.address(), false),
          source.knownLocation().incarnation(),
          conf.requestTimeout(),
          "does not answer, or cannot reach this executor",
          "in its place");
      LOG.info("executor {} sends its blocks here, {}", name, carrier.describe());
      contacts.met(
          name, "sends its blocks, " + carrier.describe(), Link.SENT, Link.SENT.expected());
      return undo.keep(peer);
    }
  }

  /**
   * Windows that their owners send here, by the number that messages carry. Numbers begin at random
   * and are never used again, so that what comes late, or from somebody else, finds nothing. Thread
   * safe.
   */
  static final class MessageReceiver implements Arrivals {
    private final Map<Long, SentTransfer> waiting = new ConcurrentHashMap<>();
    private final AtomicLong next = new AtomicLong(new SecureRandom().nextLong());

    /**
     * Begins to fetch blocks that their owner sends to the host, where it copies what lies in GPU
     * memory before.
     *
     * @param blocks each reported to the sink once
     * @param slabs what they are received in
     * @param executor makes steps that take some time
     */
    public void fetch(
        final RemotePeer peer,
        final List<Block> blocks,
        final Sink sink,
        final Slabs slabs,
        final Executor executor) {
      RemoteTransfer.startEach(blocks, some -> new SentTransfer(peer, some, sink, slabs, executor));
    }

    @Override
    public long arriving(final long id, final long offset, final long bytes, final Runnable stop) {
      final SentTransfer transfer = waiting.get(id);
      return transfer == null ? 0 : transfer.begin(offset, bytes, stop);
    }

    @Override
    public void arrived(
        final long id, final long offset, final long bytes, final @Nullable String failure) {
      final SentTransfer transfer = waiting.get(id);
      if (transfer != null) {
        transfer.received(bytes, failure);
      }
    }

    @Override
    public void damaged(final long id, final long offset, final long bytes) {
      final SentTransfer transfer = waiting.get(id);
      if (transfer != null) {
        transfer.damage(offset, bytes);
        transfer.received(bytes, null);
      }
    }

    @Override
    public void lost(final long id, final String why) {
      final SentTransfer transfer = waiting.get(id);
      if (transfer != null) {
        transfer.lost(why);
      }
    }

    /** Transfers that wait, or that something is still received for. */
    int size() {
      return waiting.size();
    }

    /**
     * One window that is sent. It waits for messages from when the places of its blocks are known;
     * its memory stays until nothing is being received in it any more.
     */
    private final class SentTransfer extends RemoteTransfer {
      private final long id = next.incrementAndGet();

      /** Completes when everything is there, or exceptionally when a message failed. */
      private final CompletableFuture<Void> complete = new CompletableFuture<>();

      /** Where messages go; absent before it waits for any. */
      @GuardedBy("this")
      private @Nullable Slab slab;

      /** How many bytes of it they may fill. */
      @GuardedBy("this")
      private long bytes;

      /** Bytes that the owner has sent, as it says; negative before it does. */
      @GuardedBy("this")
      private long total = -1;

      @GuardedBy("this")
      private long arrived;

      /** Messages that have begun and not ended. */
      @GuardedBy("this")
      private int receiving;

      /** Whether nothing more is taken. */
      @GuardedBy("this")
      private boolean stopped;

      @GuardedBy("this")
      private @Nullable String failure;

      /** Places that were damaged on their way: begin and end. */
      @GuardedBy("this")
      private final List<long[]> damaged = new ArrayList<>();

      /** What stops the messages that have begun; most have ended. */
      @GuardedBy("this")
      private final List<Runnable> stops = new ArrayList<>();

      SentTransfer(
          final RemotePeer peer,
          final List<Block> blocks,
          final Sink sink,
          final Slabs slabs,
          final Executor executor) {
        super(peer, blocks, sink, slabs, executor);
      }

      @Override
      protected void receive() {
        final ReceiveBuffers to = receiveInto(ReceiveBuffers.onHost(extents(), slabs));
        if (to == null) {
          return;
        }
        try {
          if (!expect(to)) {
            return;
          }
        } finally {
          to.release();
        }
        askInTurn(Questions.send(lease(), id))
            .thenAccept(answer -> sent(answer.getLong()))
            .thenCompose(sent -> complete)
            .thenRunAsync(this::succeed, executor)
            .exceptionally(this::failed);
      }

      /** Takes messages from now on, and holds the memory; false if this has ended. */
      private synchronized boolean expect(final ReceiveBuffers to) {
        if (hasEnded()) {
          return false;
        }
        bytes = to.host().bytes();
        slab = to.hostSlab();
        slab.retain();
        waiting.put(id, this);
        return true;
      }

      /** The owner says how many bytes it has sent. */
      private void sent(final long sent) {
        synchronized (this) {
          total = sent;
        }
        check();
      }

      private void lost(final String why) {
        synchronized (this) {
          failure = failure == null ? why : failure;
        }
        check();
      }

      private synchronized void damage(final long offset, final long length) {
        damaged.add(new long[] {offset, offset + length});
      }

      /** Returns where a message goes; 0 if it is not taken. */
      private synchronized long begin(final long offset, final long length, final Runnable stop) {
        if (slab == null || stopped || offset < 0 || length <= 0 || length > bytes - offset) {
          return 0;
        }
        receiving++;
        stops.add(stop);
        return slab.address() + offset;
      }

      private void received(final long length, final @Nullable String failed) {
        final boolean last;
        synchronized (this) {
          receiving--;
          if (failed == null) {
            arrived += length;
          } else if (failure == null) {
            failure = failed;
          }
          last = stopped && receiving == 0;
        }
        progress();
        check();
        if (last) {
          letGo();
        }
      }

      private void check() {
        final String failed;
        final boolean all;
        synchronized (this) {
          failed = failure;
          all = failure == null && total >= 0 && arrived >= total && receiving == 0;
        }
        if (failed != null) {
          complete.completeExceptionally(
              new ZerohopException(ZerohopException.Category.RETRY, "a message failed: " + failed));
        } else if (all) {
          complete.complete(null);
        }
      }

      /** Messages that have begun are stopped where the carrier can do so. */
      @Override
      protected void ending() {
        final List<Runnable> begun;
        final boolean idle;
        synchronized (this) {
          stopped = true;
          idle = receiving == 0;
          begun = List.copyOf(stops);
          stops.clear();
        }
        if (idle) {
          letGo();
        } else {
          begun.forEach(Runnable::run);
        }
      }

      private void letGo() {
        final Slab held;
        synchronized (this) {
          held = slab;
        }
        waiting.remove(id);
        if (held != null) {
          held.release();
        }
      }

      @Override
      protected synchronized boolean isDamaged(final int block, final ReceiveBuffers received) {
        for (int extent = extents().begin(block); extent < extents().end(block); extent++) {
          final long begin = received.host().place(extent);
          final long end = begin + extents().length(extent);
          for (final long[] range : damaged) {
            if (begin < range[1] && range[0] < end) {
              return true;
            }
          }
        }
        return false;
      }
    }
  }
}
