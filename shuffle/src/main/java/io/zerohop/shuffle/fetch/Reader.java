package io.zerohop.shuffle.fetch;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.route.PathChooser.Route;
import io.zerohop.shuffle.transport.Transport;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import io.zerohop.shuffle.transport.Transport.NotGettableException;
import io.zerohop.shuffle.transport.Transport.OwnerGoneException;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/**
 * The reader of one fetch: the ways by which blocks come to it, and what is counted of it. Routes
 * may connect to an owner, which takes a limited time; they throw {@link BlockFetchException}
 * (FETCH_FAILED) if the owner is gone.
 *
 * @param all what it shares with the executor's other readers
 * @param staged moves what can be had in no other way
 * @param listener is told on the reader's thread
 * @param side who reads the blocks
 * @param ended asked often, by any thread; true ends any wait
 */
record Reader(
    Fetches all,
    FallbackTransport staged,
    Fetches.Listener listener,
    ReadSide side,
    BooleanSupplier ended) {

  /** How often a block of another node is asked for there before it is staged. */
  private static final int MAX_ATTEMPTS = 2;

  /** The way for an owner's blocks as things are now. */
  Route choose(final BlockSource source) {
    return unlessGone(source, () -> all.paths.choose(source, staged, side));
  }

  /** The way for blocks that cannot be got from their owner's memory. */
  Route withoutGets(final BlockSource source, final Message why) {
    return unlessGone(source, () -> all.paths.withoutGets(source, staged, why));
  }

  /** The last way, for blocks that nobody has asked for yet. Does not connect. */
  Route staging(final BlockSource source, final Message why) {
    return all.paths.staged(source.executorId(), why);
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

  /** How to try again what could not be had from another node's memory. */
  BlockPath again(
      final BlockSource source, final Block failed, final Throwable cause, final int attempts) {
    final boolean onlySent = cause instanceof NotGettableException;
    final boolean elsewhere =
        !onlySent
            && cause instanceof ZerohopException known
            && known.category() == ZerohopException.Category.FALLBACK;
    final Route route;
    if (elsewhere || !onlySent && attempts + 1 >= MAX_ATTEMPTS) {
      route = staging(source, Message.of(cause));
    } else if (onlySent) {
      route = withoutGets(source, Message.of(cause));
    } else {
      route = choose(source);
    }
    if (route.path().isMoved()) {
      return route.path();
    }
    final Message whyStaged = route.reason();
    listener.fellBack(source, List.of(failed), whyStaged == null ? Message.of(cause) : whyStaged);
    return BlockPath.STAGED;
  }

  /** Returns what moves blocks to it, by path. */
  Map<BlockPath, Transport> transports() {
    final Map<BlockPath, Transport> transports = new EnumMap<>(BlockPath.class);
    transports.put(BlockPath.STAGED, staged);
    all.between.forEach((path, sides) -> transports.put(path, sides.get(side)));
    return transports;
  }

  /** Returns whether blocks are compared with their checksums before they are handed out. */
  boolean expectsVerified() {
    return side == ReadSide.HOST && all.conf.checksum();
  }

  /** Returns whether the reader compares blocks with their checksums itself. */
  boolean verifies() {
    return side == ReadSide.DEVICE && all.conf.checksum();
  }

  /** Counts blocks that are ready to be read. */
  void count(
      final BlockSource source, final Link link, final List<Block> blocks, final long bytes) {
    all.count(link, blocks.size(), bytes);
    listener.fetched(source, link, blocks, bytes);
  }

  /** Counts the time that a step takes as waiting. */
  void timed(final Runnable step) {
    final long begin = all.clock.nanos();
    try {
      step.run();
    } finally {
      waited(begin);
    }
  }

  /** Counts the time since then as waiting. */
  void waited(final long begin) {
    final long nanos = all.clock.since(begin);
    all.waited(nanos);
    listener.waited(nanos);
  }
}
