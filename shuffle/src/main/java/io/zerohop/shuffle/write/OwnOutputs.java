package io.zerohop.shuffle.write;

import io.zerohop.device.Signal;
import io.zerohop.shuffle.block.StoredOutput;
import io.zerohop.shuffle.catalog.AccessTimes;
import io.zerohop.shuffle.catalog.Catalog;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.catalog.OwnOutput;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.remote.owner.RemoteService.BlockHolder;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The map outputs of this executor: who writes them, and who holds some of them. Thread safe.
 * Writers and leases are closed by those who asked for them.
 */
public final class OwnOutputs implements BlockHolder {
  private final Devices devices;
  private final Catalog catalog;
  private final AccessTimes accessTimes;
  private final MapOutputWriter.Parts writerParts;
  private final BooleanSupplier ending;
  private final Set<MapOutputWriter> writers = ConcurrentHashMap.newKeySet();
  private final Set<MapOutputLease> leases = ConcurrentHashMap.newKeySet();

  /**
   * @param writerParts what writers share
   * @param ending whether nobody may wait any more
   */
  public OwnOutputs(
      final MapOutputWriter.Parts writerParts,
      final AccessTimes accessTimes,
      final BooleanSupplier ending) {
    this.devices = writerParts.devices();
    this.catalog = writerParts.catalog();
    this.accessTimes = accessTimes;
    this.writerParts = writerParts;
    this.ending = ending;
  }

  /**
   * Begins a map output, which the caller closes.
   *
   * @param mapId the map task attempt; no two outputs of a shuffle share it
   * @param partitions reduce partitions of the shuffle
   * @param tier of blocks that come from the host; those of the GPU go to the GPU's pool
   */
  public MapOutputWriter begin(
      final int shuffleId, final long mapId, final int partitions, final Tier tier) {
    accessTimes.touch(shuffleId);
    final MapOutputWriter writer =
        new MapOutputWriter(
            writerParts,
            tier,
            shuffleId,
            mapId,
            partitions,
            ended -> {
              accessTimes.touch(shuffleId);
              writers.remove(ended);
            });
    writers.add(writer);
    return writer;
  }

  /** Returns whether a map output is held in memory. */
  public boolean holds(final int shuffleId, final long mapId) {
    return catalog.find(shuffleId, mapId) != null;
  }

  /** Names of the map outputs that are held in memory. */
  public List<StoredOutput> stored() {
    return catalog.stored();
  }

  /**
   * A hold on a complete map output, for the caller to close; absent if it is not held.
   *
   * @param patience how long to wait until it is complete
   * @throws io.zerohop.device.WaitException (RETRY) if it is not complete by then
   */
  public @Nullable MapOutputLease lease(
      final int shuffleId, final long mapId, final Duration patience) {
    final OwnOutput output = retain(shuffleId, mapId);
    if (output == null) {
      return null;
    }
    boolean ready = false;
    try {
      ready(output).await(OwnOutput.READY_EPOCH, patience, ending);
      ready = true;
    } finally {
      if (!ready) {
        output.release();
      }
    }
    return leaseOf(output);
  }

  @Override
  public @Nullable OwnOutput retain(final int shuffleId, final long mapId) {
    accessTimes.touch(shuffleId);
    return catalog.retain(shuffleId, mapId);
  }

  @Override
  public Signal ready(final OwnOutput retained) {
    return retained.ready(devices.host());
  }

  /** A hold for who moves it; absent if it was freed, or is not complete yet. */
  public @Nullable MapOutputLease leaseToSpill(final OwnOutput output) {
    return output.retainReady(devices.host()) ? leaseOf(output) : null;
  }

  private MapOutputLease leaseOf(final OwnOutput retained) {
    final MapOutputLease lease =
        new MapOutputLease(
            retained, devices, writerParts.conf().device().timeout(), leases::remove);
    leases.add(lease);
    return lease;
  }

  /** Writers that are open. */
  public Set<MapOutputWriter> writers() {
    return writers;
  }

  /** Leases that are open. */
  public Set<MapOutputLease> leases() {
    return leases;
  }

  /** Map outputs that were published before their copies had ended, since the start. */
  public long begunCommits() {
    final CopyCompletions completions = writerParts.completions();
    return completions == null ? 0 : completions.begun();
  }

  /** Those whose copies have not ended yet. */
  public int pendingCommits() {
    final CopyCompletions completions = writerParts.completions();
    return completions == null ? 0 : completions.pending();
  }

  /**
   * Waits, for a limited time, for copies of outputs that are published already: they are to be
   * there when readers look. No further ones are published before their copies have ended.
   */
  public void close() {
    final CopyCompletions completions = writerParts.completions();
    if (completions != null) {
      completions.close();
    }
  }
}
