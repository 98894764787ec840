package io.zerohop.shuffle.fetch;

import io.zerohop.device.Message;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.fetch.route.PathChooser.Route;
import io.zerohop.shuffle.transport.BlockMemory;
import io.zerohop.shuffle.transport.OwnerGoneException;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The plan of one reader: a path for each owner's blocks, and windows for those that are read in
 * place. Changed by the thread that holds the fetcher's lock; not thread safe.
 */
final class FetchPlan {
  private final FetchContext context;
  private final FallbackTransport transport;
  private final ReadSide side;
  private final Deque<Request> inPlace = new ArrayDeque<>();

  /** Blocks of one owner that make up a window, and where they are read. */
  record Request(BlockSource source, BlockMemory memory, List<Block> blocks) {}

  FetchPlan(final FetchContext context, final FallbackTransport transport, final ReadSide side) {
    this.context = context;
    this.transport = transport;
    this.side = side;
  }

  /**
   * Chooses a way for an owner's blocks. May connect to it.
   *
   * @return the way if the blocks are moved; absent if they are read in place, which is noted here
   */
  @Nullable Route add(final BlockSource source) {
    final Route route = choose(source);
    final BlockMemory memory = route.memory();
    if (memory == null) {
      return route;
    }
    int from = 0;
    while (from < source.blocks().size()) {
      final int end = endOfWindow(source.blocks(), from);
      inPlace.add(new Request(source, memory, source.blocks().subList(from, end)));
      from = end;
    }
    return null;
  }

  /** Blocks in place need no memory; those that have to be copied come in windows of some bytes. */
  private int endOfWindow(final List<Block> blocks, final int from) {
    if (!context.devices().hasGpu()) {
      return Math.min(blocks.size(), from + context.conf().fetch().windowBlocks());
    }
    final boolean onDevice = side == ReadSide.DEVICE;
    final int most =
        onDevice
            ? blocks.size()
            : Math.min(blocks.size(), from + context.conf().fetch().windowBlocks());
    final long mostBytes =
        onDevice ? context.conf().device().windowSize() : context.conf().fetch().windowSize();
    int end = from;
    long bytes = 0;
    while (end < most) {
      bytes += blocks.get(end).bytes();
      if (end > from && bytes > mostBytes) {
        break;
      }
      end++;
    }
    return end;
  }

  /**
   * The way for an owner's blocks as things are now. May connect to it.
   *
   * @throws BlockFetchException (FETCH_FAILED) if the owner is gone
   */
  Route choose(final BlockSource source) {
    return unlessGone(source, () -> context.paths().choose(source, transport, side));
  }

  /**
   * The way for blocks that cannot be got from their owner's memory. May connect to it.
   *
   * @throws BlockFetchException (FETCH_FAILED) if the owner is gone
   */
  Route withoutGets(final BlockSource source, final Message why) {
    return unlessGone(source, () -> context.paths().withoutGets(source, transport, why));
  }

  private static Route unlessGone(final BlockSource source, final Supplier<Route> choice) {
    try {
      return choice.get();
    } catch (final OwnerGoneException e) {
      final Block first = source.blocks().get(0);
      throw new BlockFetchException(
          first, source, e.message().at(first + " of " + e.message().where()), e);
    }
  }

  /** The next window to open, if this is not {@linkplain #isEmpty empty}. */
  Request next() {
    return inPlace.remove();
  }

  /**
   * Looks for another way to read a window in place, since its owner gave no lease: the connection
   * was lost, or all lanes are taken.
   *
   * @return whether there is one; it comes next
   */
  boolean reroute(final Request request) {
    final BlockMemory again = choose(request.source()).memory();
    if (again == null || again == request.memory()) {
      return false;
    }
    inPlace.addFirst(new Request(request.source(), again, request.blocks()));
    return true;
  }

  boolean isEmpty() {
    return inPlace.isEmpty();
  }

  void clear() {
    inPlace.clear();
  }
}
