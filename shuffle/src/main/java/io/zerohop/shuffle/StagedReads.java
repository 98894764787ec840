package io.zerohop.shuffle;

import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.catalog.AccessTimes;
import io.zerohop.shuffle.fetch.BlockFetcher;
import io.zerohop.shuffle.fetch.FetchContext;
import io.zerohop.shuffle.fetch.FetchContext.FetchCounters;
import io.zerohop.shuffle.fetch.FetchListener;
import io.zerohop.shuffle.fetch.ReceiveBudget;
import io.zerohop.shuffle.fetch.route.PathChooser;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;

/**
 * Fetches all blocks staged, in a process without a {@link ShuffleNode} because the native library
 * or the socket folder is not available. Needs neither. Thread safe.
 */
public final class StagedReads {
  private final FetchContext context;

  /** Reads within the limits of a node that is set up in the same way. */
  public StagedReads(final ShuffleNode.Setup setup) {
    context =
        new FetchContext(
            setup.conf,
            setup.stagedTimeout,
            setup.clock,
            null,
            PathChooser.stagedOnly(
                setup.conf.paths(),
                ShuffleCode.SHARES_NO_MEMORY
                    .says("this executor shares no memory")
                    .remedy("see its log for the reason")),
            new ReceiveBudget(setup.conf.fetch().receiveBuffers(), setup.clock),
            new FetchCounters(),
            new AccessTimes(setup.clock),
            Map.of());
  }

  /** Returns what is counted of all fetches of this process. */
  public FetchCounters counters() {
    return context.counters();
  }

  /**
   * Begins to fetch blocks for one reader, which closes the fetcher.
   *
   * @param staged moves them
   * @param cancelled asked often; true ends any wait of this fetcher
   */
  public BlockFetcher fetch(
      final List<BlockSource> sources,
      final FallbackTransport staged,
      final FetchListener listener,
      final BooleanSupplier cancelled) {
    return new BlockFetcher(context, sources, staged, listener, ReadSide.HOST, cancelled);
  }
}
