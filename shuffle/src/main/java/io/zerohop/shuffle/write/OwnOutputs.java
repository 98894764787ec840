package io.zerohop.shuffle.write;

import io.zerohop.device.Signal;
import io.zerohop.device.Undo;
import io.zerohop.shuffle.catalog.AccessTimes;
import io.zerohop.shuffle.catalog.Catalog;
import io.zerohop.shuffle.catalog.Catalog.OwnOutput;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Tiers;
import io.zerohop.shuffle.transport.remote.RemoteService.BlockHolder;
import io.zerohop.shuffle.transport.samenode.OwnMemory;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The map outputs of this executor: those that are being written, and holds on those that are
 * published. Thread safe. Both are closed by those who asked for them.
 */
public final class OwnOutputs implements BlockHolder {
  final Config conf;
  final Devices devices;
  final Tiers tiers;
  final Catalog catalog;

  /** Absent if an output is published when its copies have ended. */
  final @Nullable CopyCompletions completions;

  private final AccessTimes accessTimes;
  private final BooleanSupplier ending;
  private final Set<MapOutput> open = ConcurrentHashMap.newKeySet();
  private final Set<MapOutputLease> leases = ConcurrentHashMap.newKeySet();

  /**
   * @param completions absent if an output is published when its copies have ended
   * @param ending whether nobody may wait any more
   */
  public OwnOutputs(
      final Config conf,
      final Devices devices,
      final OwnMemory memory,
      final @Nullable CopyCompletions completions,
      final AccessTimes accessTimes,
      final BooleanSupplier ending) {
    this.conf = conf;
    this.devices = devices;
    this.tiers = memory.tiers();
    this.catalog = memory.index();
    this.completions = completions;
    this.accessTimes = accessTimes;
    this.ending = ending;
  }

  /** Notes a map output that was begun, until {@link #ended}. */
  void begun(final MapOutput output, final int shuffleId) {
    accessTimes.touch(shuffleId);
    open.add(output);
  }

  /** A map output holds nothing any more that is not the catalog's. */
  void ended(final MapOutput output, final int shuffleId) {
    accessTimes.touch(shuffleId);
    open.remove(output);
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
    try (Undo undo = new Undo(output::release)) {
      ready(output).await(OwnOutput.READY_EPOCH, patience, ending);
      undo.done();
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
        new MapOutputLease(retained, devices, conf.device().timeout(), leases::remove);
    leases.add(lease);
    return lease;
  }

  /** Map outputs that are being written. */
  public Set<MapOutput> open() {
    return open;
  }

  /** Leases that are open. */
  public Set<MapOutputLease> leases() {
    return leases;
  }

  /** Map outputs that were published before their copies had ended, since the start. */
  public long begunCommits() {
    return completions == null ? 0 : completions.begun();
  }

  /** Those whose copies have not ended yet. */
  public int pendingCommits() {
    return completions == null ? 0 : completions.pending();
  }

  /**
   * Waits, for a limited time, for copies of outputs that are published already: they are to be
   * there when readers look. No further ones are published before their copies have ended.
   */
  public void close() {
    if (completions != null) {
      completions.close();
    }
  }
}
