package io.zerohop.shuffle.transport.ucx.fabric;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.WaitException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.ucx.fabric.FabricImports.FabricCopy;
import io.zerohop.shuffle.transport.ucx.memory.TransferMemory.GpuSlabs;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;

/**
 * Reads GPU memory of owners on other nodes of this node's clique: copies it out of mappings into
 * this GPU's memory. A mapping holds nothing of what it shows, so no kernel ever reads one, and a
 * copy is made by copy engines, a bounded piece at a time, as long as somebody wants it. See
 * docs/fabric.md. Thread safe; owns the mappings.
 */
public final class FabricReader implements AutoCloseable {
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
  public FabricReader(
      final Devices devices,
      final String clique,
      final Pool pool,
      final Executor executor,
      final Duration limit,
      final Clock clock) {
    this.devices = devices;
    this.clique = clique;
    this.slabs = GpuSlabs.notRegistered(pool);
    this.executor = executor;
    this.limit = limit;
    this.clock = clock;
  }

  /** Returns whether memory of an owner of this clique can be mapped here. */
  public boolean reaches(final String other) {
    return clique.equals(other);
  }

  /**
   * An owner's memory without mappings yet; for one connection to it.
   *
   * @param owner names the executor in messages
   */
  public FabricImports owner(final String owner) {
    final FabricImports made = new FabricImports(this, devices.of(Tier.DEVICE), owner, clock);
    owners.add(made);
    return made;
  }

  GpuSlabs slabs() {
    return slabs;
  }

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

  /** Unmaps what nobody uses; takes a millisecond a segment. */
  public void sweep() {
    owners.removeIf(owner -> owner.sweep(IDLE.toNanos()));
  }

  /** Unmaps everything. Whoever copies must have ended. Idempotent. */
  @Override
  public void close() {
    owners.forEach(FabricImports::close);
    sweep();
  }
}
