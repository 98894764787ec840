package io.zerohop.shuffle.fetch;

import io.zerohop.device.Device;
import io.zerohop.device.LogCode;
import io.zerohop.device.Message;
import io.zerohop.device.Signal.SignalEpoch;
import io.zerohop.device.Undo;
import io.zerohop.device.WaitException;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.catalog.CatalogView.ShuffleView;
import io.zerohop.shuffle.catalog.EntryCursor;
import io.zerohop.shuffle.catalog.LaneTable.LanePool;
import io.zerohop.shuffle.extent.ExtentList;
import io.zerohop.shuffle.extent.ExtentList.HostCopies;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.BlockMemory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.agrona.collections.IntArrayList;
import org.jspecify.annotations.Nullable;

/**
 * Blocks of one owner that are read in place under one lease. All of them are looked up, and the
 * segments they lie in mapped, before the first is handed out; so a window that was opened can be
 * read to its end even if its owner dies. Its fetch closes it. Used by one thread at a time, but
 * for {@link #checkIntact}.
 */
final class Window implements AutoCloseable {
  private final Reader reader;
  private final Fetches all;
  private final BlockSource source;
  private final BlockMemory memory;
  private final LanePool.Lease lease;
  private final List<Block> blocks = new ArrayList<>();
  private final List<Block> notHeld = new ArrayList<>();
  private final List<Block> notMapped = new ArrayList<>();
  private @Nullable Message whyNotMapped;
  private final ExtentList extents = new ExtentList();

  /** Of each block, the index behind its last extent. */
  private final IntArrayList ends = new IntArrayList();

  /** The signals of map outputs that were published before their copies had ended, for a GPU. */
  private final Map<OutputId, SignalEpoch> unready = new HashMap<>();

  private int next;
  private volatile boolean held = true;

  /** Copies on the host; absent where the blocks are read where they lie. */
  private @Nullable HostCopies gathered;

  private Window(
      final Reader reader,
      final BlockSource source,
      final BlockMemory memory,
      final LanePool.Lease lease) {
    this.reader = reader;
    this.all = reader.all();
    this.source = source;
    this.memory = memory;
    this.lease = lease;
  }

  private record OutputId(int shuffleId, long mapId) {
    static OutputId of(final Block block) {
      return new OutputId(block.shuffleId(), block.mapId());
    }
  }

  /**
   * Takes a lease and looks the blocks up.
   *
   * @param again whether they were looked up elsewhere before
   * @return absent if no lease could be had in time, or if the connection ended, a keeper may have
   *     the blocks, and it is the first time
   * @throws BlockFetchException if a block should be there but cannot be read
   * @throws WaitException if cancelled
   */
  static @Nullable Window open(
      final Reader reader,
      final BlockSource source,
      final BlockMemory memory,
      final List<Block> wanted,
      final boolean again) {
    final LanePool.Lease lease =
        memory.lanes().take(reader.all().conf.connectTimeout(), reader.ended());
    if (lease == null) {
      return null;
    }
    final Window window = new Window(reader, source, memory, lease);
    try (Undo undo = new Undo(window)) {
      if (!window.lookUp(wanted, source.kept() && !again)) {
        return null;
      }
      if (reader.side() == ReadSide.HOST) {
        window.gather();
      }
      return undo.keep(window);
    }
  }

  /**
   * Looks the blocks up.
   *
   * @param elsewhere whether they may be looked up elsewhere if the connection ends meanwhile
   * @return false if it did
   */
  private boolean lookUp(final List<Block> wanted, final boolean elsewhere) {
    final EntryCursor cursor = new EntryCursor();
    ShuffleView shuffle = null;
    Block before = null;
    boolean found = false;
    Integer unavailable = null;
    for (final Block block : wanted) {
      if (unavailable != null && unavailable == block.shuffleId()) {
        notHeld.add(block);
        continue;
      }
      try {
        if (before == null || before.shuffleId() != block.shuffleId()) {
          shuffle = memory.catalog().shuffle(block.shuffleId());
          all.accessTimes.touch(block.shuffleId());
          before = null;
        }
        if (before == null || before.mapId() != block.mapId()) {
          found = false;
          if (shuffle != null && shuffle.find(block.mapId(), cursor)) {
            found = !memory.isLeft() || shuffle.isReady(cursor);
            if (found) {
              expectReady(block, shuffle, cursor);
            }
          }
        }
        before = block;
        if (!found) {
          notHeld.add(block);
        } else if (!add(block, cursor, elsewhere)) {
          notMapped.add(block);
        }
      } catch (final WaitException | BlockFetchException e) {
        throw e;
      } catch (final ZerohopException e) {
        if (e.category() == ZerohopException.Category.FATAL) {
          throw e; // It is this executor that cannot go on, and not the owner.
        }
        if (elsewhere && isFor(e, ExchangeException.Reason.CLOSED)) {
          return false;
        }
        // The owner is well if only a segment of it cannot be had now.
        if (!isFor(e, ExchangeException.Reason.UNAVAILABLE)) {
          throw failed(ShuffleCode.BLOCK_NOT_LOOKED_UP, block, "a block could not be looked up", e);
        }
        unavailable = block.shuffleId(); // Its catalog cannot be mapped now: others can read it.
        notHeld.add(block);
      }
    }
    return true;
  }

  /**
   * Ensures that no byte of a map output is read before it is there. The host waits now; for the
   * GPU a stream waits before it reads.
   *
   * @param cursor on the block's map output
   */
  private void expectReady(final Block block, final ShuffleView shuffle, final EntryCursor cursor) {
    if (shuffle.isReady(cursor)) {
      return;
    }
    all.foundUnready();
    final Device host = all.devices().host();
    if (reader.side() == ReadSide.DEVICE) {
      final SignalEpoch ready = shuffle.ready(host, all.devices().of(Tier.DEVICE), cursor);
      if (ready != null) {
        unready.put(OutputId.of(block), ready);
        return;
      }
    }
    await(block, shuffle.ready(host, cursor));
  }

  /** Returns the signal that a stream waits for before it reads the block, unless it is raised. */
  @Nullable SignalEpoch ready(final Block block) {
    return unready.isEmpty() ? null : unready.get(OutputId.of(block));
  }

  /** Waits for the same on the host. */
  void awaitReady(final Block block) {
    final SignalEpoch ready = ready(block);
    if (ready != null) {
      await(block, ready);
    }
  }

  private void await(final Block block, final SignalEpoch ready) {
    final BooleanSupplier over = () -> reader.ended().getAsBoolean() || !memory.alive();
    try {
      ready.signal().await(ready.epoch(), all.conf.readyTimeout(), over);
    } catch (final WaitException e) {
      if (e.reason() == WaitException.Reason.CANCELLED && memory.alive()) {
        throw e;
      }
      throw failed(ShuffleCode.OUTPUT_NOT_READY, block, "the map output did not become ready", e);
    }
  }

  private static boolean isFor(final ZerohopException e, final ExchangeException.Reason reason) {
    return e instanceof ExchangeException exchange && exchange.reason() == reason;
  }

  /** Reserves memory for all blocks on the GPU or for none, and brings them there in one go. */
  private void gather() {
    if (!extents.hasDeviceOnly()) {
      return;
    }
    final long bytes = extents.hostBytes();
    all.receiveBudget.reserve(bytes, BlockTransfers.RESERVE_PATIENCE, reader.ended());
    try {
      gathered =
          extents.toHost(
              all.devices(), all.conf.device().timeout(), () -> all.receiveBudget.release(bytes));
    } catch (final ZerohopException e) {
      if (e.category() == ZerohopException.Category.FATAL) {
        throw e;
      }
      throw failed(
          ShuffleCode.BLOCK_NOT_COPIED,
          blocks.get(0),
          "a block could not be copied from the device",
          e);
    }
  }

  /**
   * Adds a block and all its extents.
   *
   * @param elsewhere whether it may be looked up elsewhere if the connection ends meanwhile
   * @return false, with nothing added, if its memory can only be reached through the host
   * @throws ExchangeException if the connection has ended, and it may be looked up elsewhere
   */
  private boolean add(final Block block, final EntryCursor cursor, final boolean elsewhere) {
    final int from = extents.size();
    for (int batch = 0; batch < cursor.batches(); batch++) {
      if (cursor.extent(batch, block.partition()) && !addExtent(block, cursor, elsewhere)) {
        extents.truncate(from);
        return false;
      }
    }
    if (extents.size() == from) {
      throw failed(
          ShuffleCode.BLOCK_EMPTY,
          block,
          "the map status says that a block has about "
              + block.bytes()
              + " bytes, its owner has none",
          null);
    }
    ends.addInt(extents.size());
    blocks.add(block);
    return true;
  }

  private boolean addExtent(final Block block, final EntryCursor cursor, final boolean elsewhere) {
    final SegmentMemory segment;
    try {
      segment = memory.blockSegment(cursor.segmentId());
    } catch (final ZerohopException e) {
      final boolean ended = elsewhere && isFor(e, ExchangeException.Reason.CLOSED);
      if (e.category() == ZerohopException.Category.FALLBACK && !ended) {
        whyNotMapped = Message.of(e);
        return false;
      }
      throw e;
    }
    if (segment == null) {
      throw failed(
          ShuffleCode.BLOCK_SEGMENT_MISSING,
          block,
          "segment " + cursor.segmentId() + " of a block is missing",
          null);
    }
    cursor.addTo(extents, segment, all.devices());
    return true;
  }

  /**
   * Blocks that the owner's catalog does not list, so they may be in files, or whose catalog cannot
   * be mapped here now.
   */
  List<Block> notHeld() {
    return notHeld;
  }

  /** Blocks that the owner holds in memory that cannot be mapped here. */
  List<Block> notMapped() {
    return notMapped;
  }

  /** Returns why they cannot, if there are any. */
  @Nullable Message whyNotMapped() {
    return whyNotMapped;
  }

  /**
   * Makes sure that all blocks can be read, for an owner that has ended. What is not listed or
   * cannot be mapped may be got from a keeper that answers other nodes, and from nobody else.
   *
   * @throws BlockFetchException if one cannot; the window is closed
   */
  void checkComplete() {
    final boolean answersNobody = !source.kept() || source.knownLocation().keeperPort() == 0;
    final List<Block> lost = notHeld.isEmpty() ? notMapped : notHeld;
    if (answersNobody && !lost.isEmpty()) {
      close();
      final Message what =
          ShuffleCode.LEFT_NOT_KEPT.says(
              "a block of an executor that ended cannot be read from its keeper");
      throw BlockFetchException.of(
          lost.get(0),
          source,
          path(),
          whyNotMapped == null ? what : what.because(whyNotMapped),
          null);
    }
  }

  BlockPath path() {
    return memory.path();
  }

  /** Returns the index of a block's first extent, or behind the last one. */
  private int begin(final int index) {
    return index == 0 ? 0 : ends.getInt(index - 1);
  }

  /** Returns what a block's bytes pass: all but a header do so on a GPU, where there are any. */
  private Link link(final int index) {
    for (int i = begin(index); i < begin(index + 1); i++) {
      if (SegmentIds.tier(extents.segment(i).id()) == Tier.DEVICE) {
        return memory.link(Tier.DEVICE);
      }
    }
    return memory.link(Tier.HOST);
  }

  /** Counts all blocks, once for each run of blocks that pass the same link. */
  void count() {
    int from = 0;
    while (from < blocks.size()) {
      final Link link = link(from);
      int to = from + 1;
      while (to < blocks.size() && link(to) == link) {
        to++;
      }
      reader.count(source, link, blocks.subList(from, to), bytes(from, to));
      from = to;
    }
  }

  BlockSource source() {
    return source;
  }

  ExtentList extents() {
    return extents;
  }

  /** Returns whether the GPU may read an extent in place, after it was prepared. */
  boolean reachable(final int extent) {
    return extents.isDeviceOnly(extent)
        || extents.segment(extent).pin(all.devices().of(Tier.DEVICE));
  }

  /** Returns the number of blocks. */
  int size() {
    return blocks.size();
  }

  /** Returns the bytes of blocks by their indexes, the last one not included. */
  private long bytes(final int from, final int to) {
    long bytes = 0;
    for (int i = begin(from); i < begin(to); i++) {
      bytes += extents.length(i);
    }
    return bytes;
  }

  boolean hasNext() {
    return next < blocks.size();
  }

  /**
   * Hands out the next block, its checksums verified if the host reads it.
   *
   * @throws BlockFetchException if its bytes are not what was written
   */
  FetchedBlock next() {
    final int index = next++;
    return new FetchedBlock(reader, this, blocks.get(index), begin(index), begin(index + 1))
        .verified();
  }

  BlockFetchException damaged(final Block block, final int extent, final String damage) {
    return failed(
        ShuffleCode.BLOCK_DAMAGED_IN_PLACE,
        block,
        "a block is damaged: " + where(extent) + ", " + damage,
        null);
  }

  private String where(final int extent) {
    final SegmentMemory segment = extents.segment(extent);
    return gathered != null && SegmentIds.tier(segment.id()) == Tier.DEVICE
        ? "in the copy that was made of segment " + segment.id()
        : "segment "
            + segment.id()
            + ", offset "
            + (extents.address(extent) - segment.address())
            + ", length "
            + extents.length(extent);
  }

  /** Returns whether the lease is open, so that blocks may be read. */
  boolean held() {
    return held;
  }

  /**
   * Makes sure that what was handed out was what the owner had written. Any thread; may miss a
   * block that is handed out at the same time.
   *
   * @throws BlockFetchException if the owner may have freed it while it was being read
   */
  void checkIntact() {
    if (next > 0 && !memory.intact()) {
      throw failed(
          ShuffleCode.OWNER_LOST_WHILE_READ,
          blocks.get(next - 1),
          "the connection to the owner was lost while a block was being read",
          null);
    }
  }

  private BlockFetchException failed(
      final LogCode code, final Block block, final String what, final @Nullable Throwable cause) {
    return BlockFetchException.of(block, source, path(), code.says(what), cause);
  }

  /** Ends the lease and frees what was copied. Idempotent. */
  @Override
  public void close() {
    held = false;
    try {
      if (gathered != null) {
        gathered.close();
      }
    } finally {
      lease.close();
    }
  }
}
