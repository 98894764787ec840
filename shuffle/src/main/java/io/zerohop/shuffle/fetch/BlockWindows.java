package io.zerohop.shuffle.fetch;

import io.zerohop.device.Message;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.route.PathChooser.Route;
import io.zerohop.shuffle.transport.BlockMemory;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.agrona.CloseHelper;
import org.jspecify.annotations.Nullable;

/**
 * The blocks of one fetch that are read in place: windows that were not opened, the one whose
 * blocks are handed out, and those that hold a lease. What cannot be read in place is left to the
 * transfers. Owns the windows. Used by one thread at a time, but for {@link #checkIntact}.
 */
final class BlockWindows implements AutoCloseable {
  private final Reader reader;
  private final BlockTransfers transfers;
  private final Deque<Request> unopened = new ArrayDeque<>();

  /** The window whose blocks are handed out; absent as soon as the last of them was. */
  private @Nullable Window current;

  /** Windows that hold a lease, in their order. */
  private final Queue<Window> open = new ConcurrentLinkedQueue<>();

  /**
   * Blocks of one owner that make up a window, and where they are read.
   *
   * @param again whether they could not be read in another memory of the owner or its keeper. They
   *     are tried twice at most: an owner may end each connection
   */
  private record Request(
      BlockSource source, BlockMemory memory, List<Block> blocks, boolean again) {}

  BlockWindows(final Reader reader, final BlockTransfers transfers) {
    this.reader = reader;
    this.transfers = transfers;
  }

  /** Adds the blocks of an owner whose memory is mapped. */
  void add(final BlockSource source, final BlockMemory memory) {
    final List<Block> blocks = source.blocks();
    for (int from = 0; from < blocks.size(); ) {
      final int end = end(blocks, from);
      unopened.add(new Request(source, memory, blocks.subList(from, end), false));
      from = end;
    }
  }

  /**
   * Returns the index behind the last block of a window: blocks in place need no memory; those that
   * have to be copied come in windows of some bytes.
   */
  private int end(final List<Block> blocks, final int from) {
    final Fetches all = reader.all();
    final boolean onDevice = reader.side() == ReadSide.DEVICE;
    final int few = Math.min(blocks.size(), from + all.conf.fetch().windowBlocks());
    if (!all.devices().hasGpu()) {
      return few;
    }
    final int most = onDevice ? blocks.size() : few;
    final long mostBytes =
        onDevice ? all.conf.device().windowSize() : all.conf.fetch().windowSize();
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

  /** Returns whether there are windows to open. */
  boolean hasUnopened() {
    return !unopened.isEmpty();
  }

  /** Returns whether the window that was opened last has blocks left. */
  boolean hasNext() {
    return current != null;
  }

  /**
   * Hands out the next block of the window that was opened last.
   *
   * @return absent if it has none left
   */
  @Nullable FetchedBlock next() {
    final Window window = current;
    if (window == null) {
      return null;
    }
    final FetchedBlock block = window.next();
    if (!window.hasNext()) {
      current = null; // It ends with that block.
    }
    return block;
  }

  /**
   * Opens the next window. What turns out not to be readable in place is moved.
   *
   * @throws BlockFetchException if a block should be there but cannot be read
   */
  void open() {
    final Request request = unopened.remove();
    final BlockSource source = request.source();
    final Window opened =
        Window.open(reader, source, request.memory(), request.blocks(), request.again());
    if (opened == null) { // The connection is lost, or all lanes are taken.
      reopen(request);
      return;
    }
    final boolean isLeft = request.memory().isLeft();
    if (isLeft) {
      reader.staged().ended(source); // What the keeper has elsewhere, nobody else has.
      opened.checkComplete();
    }
    if (opened.size() == 0) {
      opened.close();
    } else {
      open.add(opened);
      current = opened;
      opened.count();
    }
    final Message whyNotMapped = opened.whyNotMapped();
    final List<Block> elsewhere = new ArrayList<>(opened.notHeld());
    if (isLeft) {
      elsewhere.addAll(opened.notMapped());
    } else if (whyNotMapped != null) {
      transfers.add(source, opened.notMapped(), reader.withoutGets(source, whyNotMapped));
    }
    if (!elsewhere.isEmpty()) {
      final Message why =
          ShuffleCode.NOT_IN_MEMORY.says(
              isLeft
                  ? "the keeper of the node does not hold the blocks in memory that is mapped here"
                  : "the owner does not hold the blocks in memory");
      stage(source, elsewhere, isLeft && whyNotMapped != null ? why.because(whyNotMapped) : why);
    }
  }

  /** Goes another way, or the same one to memory that was connected to anew. */
  private void reopen(final Request request) {
    final BlockSource source = request.source();
    final Route route = reader.choose(source);
    final BlockMemory memory = route.memory();
    if (memory == null) {
      transfers.add(source, request.blocks(), route);
    } else if (memory != request.memory() && !request.again()) {
      unopened.addFirst(new Request(source, memory, request.blocks(), true));
    } else {
      stage(
          source,
          request.blocks(),
          ShuffleCode.NO_LANE_FREE.says("the owner has no lane free for another reader"));
    }
  }

  private void stage(final BlockSource source, final List<Block> blocks, final Message why) {
    transfers.add(source, blocks, reader.staging(source, why));
  }

  /**
   * Ends a window whose last block was read.
   *
   * @throws BlockFetchException if its owner may have freed blocks meanwhile; it has ended then
   */
  void end(final Window window) {
    try {
      window.checkIntact();
    } finally {
      open.remove(window);
      window.close();
    }
  }

  /**
   * Makes sure that what was handed out, and can still be read, is what its owner had written. Any
   * thread; does not wait.
   *
   * @throws BlockFetchException if an owner may have freed it
   */
  void checkIntact() {
    open.forEach(Window::checkIntact);
  }

  /** Ends all leases. */
  @Override
  public void close() {
    try {
      CloseHelper.closeAll(open);
    } finally {
      unopened.clear();
      open.clear();
      current = null;
    }
  }
}
