package io.zerohop.shuffle.fetch;

import io.zerohop.device.Signal.SignalEpoch;
import io.zerohop.device.WaitException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.catalog.EntryCursor;
import io.zerohop.shuffle.catalog.ShuffleView;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.BlockMemory;
import java.util.HashMap;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The map outputs of a window that were published before their copies had ended. A reader on the
 * host waits for them when it looks them up; for one on the GPU a stream waits, before it reads.
 * Used by one thread at a time.
 */
final class UnreadyOutputs {
  private final FetchContext context;
  private final BlockSource source;
  private final BlockMemory memory;
  private final BooleanSupplier ended;
  private final Map<Output, SignalEpoch> unready = new HashMap<>();

  private record Output(int shuffleId, long mapId) {
    static Output of(final Block block) {
      return new Output(block.shuffleId(), block.mapId());
    }
  }

  /**
   * @param ended ends waits
   */
  UnreadyOutputs(
      final FetchContext context,
      final BlockSource source,
      final BlockMemory memory,
      final BooleanSupplier ended) {
    this.context = context;
    this.source = source;
    this.memory = memory;
    this.ended = ended;
  }

  /**
   * Ensures that nothing is read before it is ready: by the GPU, if the GPU reads it.
   *
   * @param cursor on the block's map output
   */
  void expect(
      final Block block, final ShuffleView shuffle, final EntryCursor cursor, final ReadSide side) {
    if (shuffle.isReady(cursor)) {
      return;
    }
    context.counters().foundUnready();
    if (side == ReadSide.DEVICE) {
      final SignalEpoch ready =
          shuffle.ready(context.devices().host(), context.devices().of(Tier.DEVICE), cursor);
      if (ready != null) {
        unready.put(Output.of(block), ready);
        return;
      }
    }
    await(block, shuffle.ready(context.devices().host(), cursor));
  }

  /** Returns the signal that a stream waits for before it reads the block, unless it is raised. */
  @Nullable SignalEpoch of(final Block block) {
    return unready.isEmpty() ? null : unready.get(Output.of(block));
  }

  /** Waits for the same on the host. */
  void await(final Block block) {
    final SignalEpoch ready = of(block);
    if (ready != null) {
      await(block, ready);
    }
  }

  private void await(final Block block, final SignalEpoch ready) {
    final BooleanSupplier over = () -> ended.getAsBoolean() || !memory.alive();
    try {
      ready.signal().await(ready.epoch(), context.conf().readyTimeout(), over);
    } catch (final WaitException e) {
      if (e.reason() == WaitException.Reason.CANCELLED && memory.alive()) {
        throw e;
      }
      throw BlockFetchException.of(
          block,
          source,
          memory.path(),
          ShuffleCode.OUTPUT_NOT_READY.says("the map output did not become ready"),
          e);
    }
  }
}
