package io.zerohop.shuffle.transport.ucx;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.Message;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.WaitException;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.OpaqueHandle;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.ucx.memory.GetQuestions.FabricTarget;
import io.zerohop.shuffle.transport.ucx.memory.TransferMemory.GpuSlabs;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads GPU memory of owners on other nodes of this node's clique: copies it out of mappings into
 * this GPU's memory. A mapping holds nothing of what it shows, so no kernel ever reads one, and a
 * copy is made by copy engines, a bounded piece at a time, as long as somebody wants it. See
 * docs/fabric.md. Thread safe; owns the mappings.
 */
final class FabricReader implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(FabricReader.class);

  /** What is under way when an owner dies: 64 MiB take half a millisecond or less. */
  private static final long ROUND_BYTES = 64L << 20;

  /** A mapping that nobody has used for so long goes: its owner may have freed the memory. */
  private static final Duration IDLE = Duration.ofMinutes(1);

  private final Devices devices;
  private final String clique;
  private final GpuSlabs slabs;
  private final Executor executor;
  private final Duration limit;
  private final Clock clock;
  private final Set<FabricImports> owners = ConcurrentHashMap.newKeySet();

  /**
   * @param clique of this node's GPU
   * @param pool of GPU memory that is copied into
   * @param executor waits for copies
   * @param limit longest time for a round of copies
   * @param clock by which mappings are idle
   */
  FabricReader(
      final Devices devices,
      final String clique,
      final Pool pool,
      final Executor executor,
      final Duration limit,
      final Clock clock) {
    this.devices = devices;
    this.clique = clique;
    this.slabs = new GpuSlabs(pool, null, null);
    this.executor = executor;
    this.limit = limit;
    this.clock = clock;
  }

  /** Returns whether memory of an owner of this clique can be mapped here. */
  boolean reaches(final String other) {
    return clique.equals(other);
  }

  /**
   * An owner's memory without mappings yet; for one connection to it.
   *
   * @param owner names the executor in messages
   */
  FabricImports owner(final String owner) {
    final FabricImports made = new FabricImports(owner);
    owners.add(made);
    return made;
  }

  /** Unmaps what nobody uses; takes a millisecond a segment. */
  void sweep() {
    owners.removeIf(owner -> owner.sweep(IDLE.toNanos()));
  }

  /** Unmaps everything. Whoever copies must have ended. Idempotent. */
  @Override
  public void close() {
    owners.forEach(FabricImports::close);
    sweep();
  }

  /**
   * The mappings of one owner's GPU memory on another node, by fabric handles, while one connection
   * to it exists. A segment is mapped when it is first read; since its id is never used again, a
   * mapping that outlives its segment is never asked for. Once a handle was refused, or a copy
   * failed, the owner is not read this way any more. Thread safe; owns the mappings.
   */
  final class FabricImports implements AutoCloseable {
    private final String owner;

    @GuardedBy("this")
    private final Map<Long, Import> imports = new HashMap<>();

    @GuardedBy("this")
    private boolean closed;

    private volatile boolean refused;

    private FabricImports(final String owner) {
      this.owner = owner;
    }

    /** A mapping, and who reads it. */
    private final class Import {
      private final Segment segment;
      private int holds;
      private long unusedSince = clock.nanos();

      Import(final Segment segment) {
        this.segment = segment;
      }
    }

    /** Returns whether the owner's memory has to come another way. */
    boolean refused() {
      return refused;
    }

    /** Memory that its bytes are copied into. */
    GpuSlabs slabs() {
      return slabs;
    }

    /** Returns those of an owner's segments that are not mapped yet. */
    synchronized Set<Long> missing(final Collection<Long> segments) {
      final Set<Long> missing = new LinkedHashSet<>(segments);
      missing.removeAll(imports.keySet());
      return missing;
    }

    /** Maps a segment, unless that is refused. Takes a millisecond; waits for the driver. */
    void take(final long segmentId, final FabricTarget target) {
      if (refused) {
        return;
      }
      if (target.bytes() == 0) {
        refuse(Message.of("it gives no fabric handle of segment " + segmentId));
        return;
      }
      synchronized (this) {
        if (closed || imports.containsKey(segmentId)) {
          return;
        }
        try {
          imports.put(
              segmentId,
              new Import(
                  devices
                      .of(Tier.DEVICE)
                      .map(
                          new OpaqueHandle(
                              SegmentHandle.Kind.FABRIC, target.bytes(), target.handle()),
                          "executor " + owner)));
        } catch (final ZerohopException e) {
          if (e.category() == ZerohopException.Category.FATAL) {
            throw e;
          }
          refuse(e.message());
        }
      }
    }

    /** The owner's memory cannot be read this way; said once. */
    void refuse(final Message why) {
      synchronized (this) {
        if (refused || closed) {
          return;
        }
        refused = true;
      }
      ShuffleCode.FABRIC_REFUSED
          .says(
              "an executor's GPU memory cannot be read over the NVLink fabric; its blocks come by"
                  + " UCX, or are staged")
          .at("executor " + owner)
          .remedy(
              "run nvidia-imex of one IMEX domain on both nodes, and give both executors the same"
                  + " IMEX channel, such as /dev/nvidia-caps-imex-channels/channel0; or set"
                  + " spark.zerohop.fabric.enabled=false")
          .because(why)
          .warn(LOG);
    }

    /**
     * Keeps segments mapped until the hold is closed; absent if one of them is not mapped.
     *
     * @param segments each once
     */
    synchronized @Nullable Hold hold(final Set<Long> segments) {
      if (closed || refused) {
        return null;
      }
      final Map<Long, Import> held = new HashMap<>();
      for (final long segment : segments) {
        final Import used = imports.get(segment);
        if (used == null) {
          return null;
        }
        held.put(segment, used);
      }
      held.values().forEach(used -> used.holds++);
      return new Hold(held);
    }

    /**
     * Segments that stay mapped. The memory behind them stays only under a lease of the owner's.
     */
    final class Hold implements AutoCloseable {
      private final Map<Long, Import> held;

      private Hold(final Map<Long, Import> held) {
        this.held = held;
      }

      /**
       * Returns the address of bytes of a segment.
       *
       * @throws ZerohopException (RETRY) if they are not within it
       */
      long address(final long segmentId, final long offset, final long bytes) {
        final Import used = held.get(segmentId);
        if (used == null) {
          throw new IllegalStateException("segment " + segmentId + " is not held");
        }
        final Segment segment = used.segment;
        if (offset < 0 || bytes < 0 || offset > segment.bytes() - bytes) {
          throw new ZerohopException(
              ZerohopException.Category.RETRY,
              "executor " + owner + " names bytes that are not within its segment " + segmentId);
        }
        return segment.address() + offset;
      }

      /** Called once. */
      @Override
      public void close() {
        synchronized (FabricImports.this) {
          for (final Import used : held.values()) {
            used.holds--;
            used.unusedSince = clock.nanos();
          }
        }
      }
    }

    /** Makes copies out of what is held; returns without waiting for them. */
    void copy(final FabricCopy copy) {
      try {
        executor.execute(() -> copyAndTell(copy));
      } catch (final RejectedExecutionException e) {
        copy.from().close();
        copy.done().accept(e); // This executor is shutting down.
      }
    }

    private void copyAndTell(final FabricCopy copy) {
      Throwable failure = null;
      try {
        devices.streams(Tier.DEVICE).run(stream -> copyAll(copy, stream));
        copy.from().close(); // Not after a failure that leaves copies under way.
      } catch (final RuntimeException | Error e) { // Whatever it is: the transfer waits for this.
        failure = e;
        if (!FabricCopy.isStuck(e)) {
          copy.from().close();
        }
      }
      copy.done().accept(failure);
    }

    private void copyAll(final FabricCopy copy, final CopyStream stream) {
      final CopyBatch batch = stream.newBatch();
      for (final FabricCopy.Piece piece : copy.pieces()) {
        final long from = copy.from().address(piece.segment(), piece.offset(), piece.bytes());
        for (long done = 0; done < piece.bytes(); done += ROUND_BYTES) {
          final long bytes = Math.min(ROUND_BYTES, piece.bytes() - done);
          if (batch.bytes() > 0 && batch.bytes() + bytes > ROUND_BYTES) {
            finish(copy, stream, batch);
          }
          batch.addByEngine(from + done, piece.to() + done, bytes);
        }
      }
      finish(copy, stream, batch);
    }

    /** One round: not begun if nobody wants it any more, as when the owner was lost. */
    private void finish(final FabricCopy copy, final CopyStream stream, final CopyBatch batch) {
      if (!copy.wanted().getAsBoolean()) {
        throw new WaitException(
            WaitException.Reason.CANCELLED,
            "the read was cancelled, or the connection to the owner was lost");
      }
      stream.submit(batch);
      stream.synchronize(limit);
      batch.clear();
      copy.progress().run();
    }

    /**
     * Unmaps what nobody has used for so long; all that nobody uses once the connection is lost.
     *
     * @return whether that was the last of it, and no more will come
     */
    private synchronized boolean sweep(final long idleNanos) {
      final long now = clock.nanos();
      for (final Iterator<Import> all = imports.values().iterator(); all.hasNext(); ) {
        final Import one = all.next();
        if (one.holds == 0 && (closed || refused || now - one.unusedSince > idleNanos)) {
          all.remove();
          one.segment.close();
        }
      }
      return closed && imports.isEmpty();
    }

    /** The connection is lost: nothing is mapped any more, nor held anew. Does not wait. */
    @Override
    public void close() {
      synchronized (this) {
        closed = true;
      }
    }
  }

  /**
   * The copies of one transfer out of an owner's memory. Immutable.
   *
   * @param from the mappings, given back when the copies have ended
   * @param wanted asked before each round of copies; if not it fails
   * @param progress run after each round
   * @param done run once, on a thread of the reader's, with the failure if there was one. After one
   *     that {@link #isStuck} the memory copied to may still be written
   */
  record FabricCopy(
      FabricImports.Hold from,
      List<Piece> pieces,
      BooleanSupplier wanted,
      Runnable progress,
      Consumer<@Nullable Throwable> done) {

    /**
     * A run of bytes.
     *
     * @param segment the owner's
     * @param offset in it
     * @param to address in this GPU's memory
     */
    record Piece(long segment, long offset, long to, long bytes) {}

    /**
     * Returns whether copies may still be under way, so that no memory of theirs may be used again.
     */
    static boolean isStuck(final @Nullable Throwable failure) {
      return failure instanceof ZerohopException known
          && known.category() == ZerohopException.Category.FATAL;
    }
  }
}
