package io.zerohop.shuffle.catalog;

import io.zerohop.device.Device;
import io.zerohop.device.Signal;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.StoredOutput;
import io.zerohop.shuffle.catalog.BatchImage.EntryImage;
import io.zerohop.shuffle.catalog.CatalogView.CatalogException;
import io.zerohop.shuffle.catalog.CatalogView.ChunkLayout;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.pool.Reclaimer;
import io.zerohop.shuffle.pool.Region;
import io.zerohop.shuffle.pool.SegmentMemory;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The index of this node's blocks, and the only writer of the memory in which peers search it.
 * Thread safe: a lock orders writers of this process; readers take no lock, see {@link
 * CatalogView}. See docs/catalog.md.
 *
 * <p>Owns one reference of each region that it was given and of its chunks, until they are retired.
 */
public final class Catalog {
  private static final int FIRST_CHUNK_ENTRIES = 32;
  private static final int LARGEST_CHUNK_ENTRIES = 1 << 16;
  private static final long CHUNK_BYTES = 64 << 10;
  private static final long ENTRY_OVERHEAD = 4L * ChunkLayout.SLOT_BYTES + Signal.BYTES;
  private static final long GROWTH_BYTES = 32 << 20;

  private final Device device;
  private final RootSegment root;
  private final Pool pool;
  private final Reclaimer reclaimer;
  private final Map<Integer, OwnShuffle> shuffles = new HashMap<>();

  /** Of shuffles that something was begun of and that have not ended. */
  private final Map<Integer, Registration> registrations = new HashMap<>();

  public Catalog(
      final Device device, final RootSegment root, final Pool pool, final Reclaimer reclaimer) {
    this.device = device;
    this.root = root;
    this.pool = pool;
    this.reclaimer = reclaimer;
  }

  /** The shuffle's present life, begun if need be; a writer's ticket for {@link #publish}. */
  public synchronized Registration registration(final int shuffleId) {
    return registrations.computeIfAbsent(shuffleId, id -> new Registration());
  }

  /**
   * Takes over the batches' regions and makes the map output visible. An output of the same key is
   * replaced. Without {@code ready}, this takes a reference of each region and of the entry's: the
   * caller releases them when nothing writes to them any more. Readers find the output and wait
   * ({@link OwnOutput#ready}).
   *
   * @param registration what {@link #registration} said when the writer began
   * @param ready whether its bytes are there
   * @throws PoolFullException if the entry finds no room; nothing was taken over
   * @throws ZerohopException (RETRY) if the shuffle was unregistered since; nothing was taken over
   */
  public synchronized OwnOutput publish(
      final int shuffleId,
      final long mapId,
      final Registration registration,
      final int partitions,
      final List<BatchImage> batches,
      final boolean ready) {
    if (registration.isEnded()) {
      throw new ZerohopException(
          ZerohopException.Category.RETRY,
          "shuffle " + shuffleId + " was unregistered while map " + mapId + " was being written");
    }
    final long entryBytes = EntryImage.bytes(partitions, batches);
    final OwnShuffle shuffle = shuffleWithRoom(shuffleId, entryBytes);
    shuffle.chunks.forEach(ShuffleChunk::restoreHeader);
    final ShuffleChunk chunk = shuffle.last();
    final int signal = chunk.nextSignal();
    final int offset = chunk.append(mapId, partitions, batches);
    if (ready) {
      chunk.signal(device, signal).raise(ShuffleChunk.READY_EPOCH);
    }
    remove(shuffleId, mapId);
    final OwnOutput output =
        new OwnOutput(
            shuffleId,
            mapId,
            partitions,
            batches.stream().map(BatchImage::region).toList(),
            new OwnOutput.Entry(chunk, offset, Math.toIntExact(entryBytes), signal));
    shuffle.outputs.put(mapId, output);
    chunk.publish(mapId, offset);
    if (!ready) {
      output.retain();
    }
    return output;
  }

  /**
   * Publishes new places of a map output's batches by one store. Readers find the old place or the
   * new one, and the old one stays valid until its last reader has passed. Takes over the new
   * regions. The output was ready before it was copied.
   *
   * @param regions of all its batches, in order; those that did not move are the old ones
   * @return false, with nothing taken over, if the catalog does not hold this output any more
   * @throws PoolFullException if the new entry finds no room; nothing was taken over
   * @throws CatalogException if the old entry is damaged; nothing was taken over
   */
  public synchronized boolean move(final OwnOutput output, final List<Region> regions) {
    if (find(output.shuffleId, output.mapId) != output) {
      return false;
    }
    if (output.entryDamage() != null) {
      throw new CatalogException("its entry is damaged");
    }
    final OwnOutput.Entry before = output.entry;
    final OwnShuffle shuffle = shuffleWithRoom(output.shuffleId, before.bytes);
    final ShuffleChunk chunk = shuffle.last();
    final int signal = chunk.nextSignal();
    final int offset = chunk.append(before, regions);
    chunk.signal(device, signal).raise(ShuffleChunk.READY_EPOCH);
    final OwnOutput moved =
        new OwnOutput(
            output.shuffleId,
            output.mapId,
            output.partitions,
            regions,
            new OwnOutput.Entry(chunk, offset, before.bytes, signal));
    shuffle.outputs.put(output.mapId, moved);
    chunk.publish(output.mapId, offset);
    if (chunk != before.chunk) {
      // A reader that finds nothing in the older chunk goes on to the newer one.
      before.chunk.unpublish(output.mapId);
    }
    final List<Region> left = new ArrayList<>(output.regions);
    left.removeAll(regions);
    reclaimer.retire(left);
    return true;
  }

  private OwnShuffle shuffleWithRoom(final int shuffleId, final long entryBytes) {
    final OwnShuffle known = shuffles.get(shuffleId);
    if (known != null && known.last().hasRoom(entryBytes)) {
      return known;
    }
    final OwnShuffle shuffle = known == null ? new OwnShuffle() : known;
    final int entries = shuffle.nextEntries(entryBytes);
    final Region region =
        pool.allocate(Math.max(CHUNK_BYTES, ShuffleChunk.bytes(entries, entryBytes)));
    final ShuffleChunk chunk =
        new ShuffleChunk(region, shuffleId, shuffle.chunks.size(), root.incarnation(), entries);
    if (known != null) {
      known.last().link(chunk);
    } else if (root.list(shuffleId, region.memory().id(), region.offset())) {
      shuffles.put(shuffleId, shuffle);
    } else {
      region.release();
      throw new PoolFullException(
          "the directory of this executor lists as many shuffles as it can", null);
    }
    shuffle.chunks.add(chunk);
    return shuffle;
  }

  /** The map output of this key, if it is held. */
  public synchronized @Nullable OwnOutput find(final int shuffleId, final long mapId) {
    final OwnShuffle shuffle = shuffles.get(shuffleId);
    return shuffle == null ? null : shuffle.outputs.get(mapId);
  }

  /** The map output, if it is held, with a reference taken of each of its regions. */
  public synchronized @Nullable OwnOutput retain(final int shuffleId, final long mapId) {
    final OwnOutput output = find(shuffleId, mapId);
    return output != null && output.retain() ? output : null;
  }

  /** Forgets a map output; its memory is freed after its last reader. */
  public synchronized boolean remove(final int shuffleId, final long mapId) {
    final OwnOutput output = find(shuffleId, mapId);
    return output != null && remove(output);
  }

  /** The same, unless the catalog holds another output of this key, or none, by now. */
  public synchronized boolean remove(final OwnOutput output) {
    final OwnShuffle shuffle = shuffles.get(output.shuffleId);
    if (shuffle == null || !shuffle.outputs.remove(output.mapId, output)) {
      return false;
    }
    output.entry.chunk.unpublish(output.mapId);
    reclaimer.retire(output.regions);
    return true;
  }

  /** Forgets a shuffle, refuses the writers that began before, frees memory after its readers. */
  public synchronized void unregister(final int shuffleId) {
    final Registration registration = registrations.remove(shuffleId);
    if (registration != null) {
      registration.end();
    }
    final OwnShuffle shuffle = shuffles.remove(shuffleId);
    if (shuffle != null) {
      root.unlist(shuffleId);
      final List<Region> regions = new ArrayList<>();
      shuffle.outputs.values().forEach(output -> regions.addAll(output.regions));
      shuffle.chunks.forEach(chunk -> regions.add(chunk.region()));
      reclaimer.retire(regions);
    }
  }

  /**
   * Returns the segments that a reader of a map output needs: those of its batches, and those of
   * the shuffle's chunks, by which it is found.
   *
   * @return their ids, one that several lie in as often; empty if the output is not held
   */
  public synchronized long[] segmentsOf(final int shuffleId, final long mapId) {
    final OwnShuffle shuffle = shuffles.get(shuffleId);
    final OwnOutput output = shuffle == null ? null : shuffle.outputs.get(mapId);
    if (shuffle == null || output == null) {
      return new long[0];
    }
    final int regions = output.regions.size();
    final long[] segments = new long[regions + shuffle.chunks.size()];
    for (int i = 0; i < segments.length; i++) {
      final Region region =
          i < regions ? output.regions.get(i) : shuffle.chunks.get(i - regions).region();
      segments[i] = region.memory().id();
    }
    return segments;
  }

  /** Forgets everything. */
  public synchronized void unregisterAll() {
    List.copyOf(shuffles.keySet()).forEach(this::unregister);
  }

  /** Names of all map outputs that are held. */
  public synchronized List<StoredOutput> stored() {
    final List<StoredOutput> stored = new ArrayList<>();
    shuffles.forEach(
        (shuffleId, shuffle) ->
            shuffle
                .outputs
                .keySet()
                .forEach(mapId -> stored.add(new StoredOutput(shuffleId, mapId))));
    return stored;
  }

  /** Shuffles with at least one block held here. */
  public synchronized List<Integer> shuffles() {
    return List.copyOf(shuffles.keySet());
  }

  /** Returns the outputs of a shuffle, in the order of their publication. */
  public synchronized List<OwnOutput> outputs(final int shuffleId) {
    final OwnShuffle shuffle = shuffles.get(shuffleId);
    return shuffle == null ? List.of() : List.copyOf(shuffle.outputs.values());
  }

  /** Returns the number of map outputs. */
  public synchronized int outputs() {
    return shuffles.values().stream().mapToInt(shuffle -> shuffle.outputs.size()).sum();
  }

  private static final class OwnShuffle {
    private final List<ShuffleChunk> chunks = new ArrayList<>();
    private final Map<Long, OwnOutput> outputs = new LinkedHashMap<>();

    private ShuffleChunk last() {
      return chunks.get(chunks.size() - 1);
    }

    /** Twice the entries of the chunk before, or as many as fill a small one; within reason. */
    private int nextEntries(final long entryBytes) {
      final int doubled =
          Math.min(LARGEST_CHUNK_ENTRIES, FIRST_CHUNK_ENTRIES << Math.min(chunks.size(), 16));
      final long filling = Math.max(doubled, CHUNK_BYTES / (entryBytes + ENTRY_OVERHEAD));
      return (int) Math.max(1, Math.min(filling, GROWTH_BYTES / entryBytes));
    }
  }

  /**
   * One registration of a shuffle in this executor: from the first writer until the shuffle is
   * unregistered. What was begun in it must not outlive it. Thread safe.
   */
  public static final class Registration {
    private volatile boolean ended;

    Registration() {}

    /** Returns whether the shuffle was unregistered since; once true, always true. */
    public boolean isEnded() {
      return ended;
    }

    void end() {
      ended = true;
    }
  }

  /**
   * A map output that the catalog holds. Where its blocks lie is not kept twice: it is read from
   * the entry, as peers do. Thread safe.
   */
  public static final class OwnOutput {
    /** What {@link #ready} is raised to; each output has a word of its own. */
    public static final int READY_EPOCH = ShuffleChunk.READY_EPOCH;

    private final int shuffleId;
    private final long mapId;
    private final int partitions;
    private final List<Region> regions;
    final Entry entry;

    /** Location of its entry, as it was written: the entry itself may be damaged. */
    record Entry(ShuffleChunk chunk, int offset, int bytes, int signal) {}

    OwnOutput(
        final int shuffleId,
        final long mapId,
        final int partitions,
        final List<Region> regions,
        final Entry entry) {
      this.shuffleId = shuffleId;
      this.mapId = mapId;
      this.partitions = partitions;
      this.regions = List.copyOf(regions);
      this.entry = entry;
    }

    public int shuffleId() {
      return shuffleId;
    }

    public long mapId() {
      return mapId;
    }

    public int partitions() {
      return partitions;
    }

    /** Takes one extent: what its entry says of it, and the segment that it lies in. */
    @FunctionalInterface
    public interface ExtentVisitor {
      void extent(EntryCursor extent, SegmentMemory memory);
    }

    /** Gives the extents of a block, in order. Callers hold the output, see {@link #retain}. */
    public void forEachExtent(final int partition, final ExtentVisitor visitor) {
      final EntryCursor cursor = new EntryCursor();
      entry.chunk.open(entry.offset, entry.bytes, cursor);
      for (int batch = 0; batch < regions.size(); batch++) {
        if (cursor.extent(batch, partition)) {
          visitor.extent(cursor, regions.get(batch).memory());
        }
      }
    }

    /** Returns the damage of its entry, if there is any. Callers hold the output. */
    public @Nullable String entryDamage() {
      return entry.chunk.isIntact(entry.offset, entry.bytes)
          ? null
          : "its entry in segment " + entry.chunk.region().memory().id();
    }

    /**
     * Takes a reference of each of its regions, and of the one that its entry lies in.
     *
     * @return false, with nothing taken, if the output was freed already
     */
    public boolean retain() {
      if (!entry.chunk.region().retain()) {
        return false;
      }
      for (int i = 0; i < regions.size(); i++) {
        if (!regions.get(i).retain()) {
          regions.subList(0, i).forEach(Region::release);
          entry.chunk.region().release();
          return false;
        }
      }
      return true;
    }

    /**
     * The same for who moves it. Does not wait.
     *
     * @return false, with nothing taken, also if its bytes are not there yet
     */
    public boolean retainReady(final Device host) {
      if (!retain()) {
        return false;
      }
      if (ready(host).reached(READY_EPOCH)) {
        return true;
      }
      release();
      return false;
    }

    /** Drops what {@link #retain} took. */
    public void release() {
      regions.forEach(Region::release);
      entry.chunk.region().release();
    }

    /**
     * The word that says when its bytes are there, at {@link #READY_EPOCH}. Callers hold the
     * output.
     *
     * @param host the device of host memory, where it lies
     */
    public Signal ready(final Device host) {
      return entry.chunk.signal(host, entry.signal);
    }

    /**
     * The same word for streams of a GPU; absent if that cannot reach it. Callers hold the output.
     *
     * @throws ZerohopException (FATAL) if the GPU cannot be used any more
     */
    public @Nullable Signal ready(final Device host, final Device gpu) {
      return entry.chunk.signal(host, gpu, entry.signal);
    }

    /** Returns the regions of its batches, in order. */
    public List<Region> regions() {
      return regions;
    }

    @Override
    public String toString() {
      return "map output " + mapId + " of shuffle " + shuffleId;
    }
  }
}
