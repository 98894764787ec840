package io.zerohop.shuffle.catalog;

import io.zerohop.device.Device;
import io.zerohop.device.Signal;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.StoredOutput;
import io.zerohop.shuffle.catalog.BatchImage.EntryImage;
import io.zerohop.shuffle.catalog.CatalogView.CatalogException;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.pool.Reclaimer;
import io.zerohop.shuffle.pool.Region;
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
   * replaced.
   *
   * @param registration what {@link #registration} said when the writer began
   * @throws PoolFullException if the entry finds no room; nothing was taken over
   * @throws ZerohopException (RETRY) if the shuffle was unregistered since; nothing was taken over
   */
  public OwnOutput publish(
      final int shuffleId,
      final long mapId,
      final Registration registration,
      final int partitions,
      final List<BatchImage> batches) {
    return publish(shuffleId, mapId, registration, partitions, batches, true);
  }

  /**
   * The same for a map output whose bytes are still on their way: readers find it, and wait until
   * it is ready ({@link OwnOutput#ready}).
   *
   * @return the output, with a reference taken of each of its regions and of the one of its entry,
   *     for as long as anything may be written to them
   */
  public synchronized OwnOutput publishPending(
      final int shuffleId,
      final long mapId,
      final Registration registration,
      final int partitions,
      final List<BatchImage> batches) {
    final OwnOutput output = publish(shuffleId, mapId, registration, partitions, batches, false);
    output.retain();
    return output;
  }

  synchronized OwnOutput publish(
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
    final List<Region> regions = batches.stream().map(BatchImage::region).toList();
    final OwnOutput output =
        new OwnOutput(
            shuffleId,
            mapId,
            partitions,
            regions,
            new OwnOutput.Entry(chunk, offset, Math.toIntExact(entryBytes), signal));
    shuffle.outputs.put(mapId, output);
    chunk.publish(mapId, offset);
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
    if (find(output.shuffleId(), output.mapId()) != output) {
      return false;
    }
    final ShuffleChunk before = output.chunk();
    if (!before.isIntact(output.entryOffset(), output.entryBytes())) {
      throw new CatalogException("its entry is damaged");
    }
    final OwnShuffle shuffle = shuffleWithRoom(output.shuffleId(), output.entryBytes());
    final ShuffleChunk chunk = shuffle.last();
    final int signal = chunk.nextSignal();
    final int offset = chunk.append(output, regions);
    chunk.signal(device, signal).raise(ShuffleChunk.READY_EPOCH);
    final OwnOutput moved =
        new OwnOutput(
            output.shuffleId(),
            output.mapId(),
            output.partitions(),
            regions,
            new OwnOutput.Entry(chunk, offset, output.entryBytes(), signal));
    shuffle.outputs.put(output.mapId(), moved);
    chunk.publish(output.mapId(), offset);
    if (chunk != before) {
      // A reader that finds nothing in the older chunk goes on to the newer one.
      before.unpublish(output.mapId());
    }
    final List<Region> left = new ArrayList<>(output.regions());
    left.removeAll(regions);
    reclaimer.retire(left);
    return true;
  }

  private OwnShuffle shuffleWithRoom(final int shuffleId, final long entryBytes) {
    final OwnShuffle shuffle = shuffles.get(shuffleId);
    if (shuffle == null) {
      final OwnShuffle added = new OwnShuffle();
      final ShuffleChunk chunk = newChunk(shuffleId, 0, added.nextEntries(entryBytes), entryBytes);
      if (!root.list(shuffleId, chunk.region().memory().id(), chunk.region().offset())) {
        chunk.region().release();
        throw new PoolFullException(
            "the directory of this executor lists as many shuffles as it can", entryBytes, null);
      }
      added.add(chunk);
      shuffles.put(shuffleId, added);
      return added;
    }
    if (!shuffle.last().hasRoom(entryBytes)) {
      final ShuffleChunk chunk =
          newChunk(shuffleId, shuffle.chunks.size(), shuffle.nextEntries(entryBytes), entryBytes);
      shuffle.last().link(chunk);
      shuffle.add(chunk);
    }
    return shuffle;
  }

  private ShuffleChunk newChunk(
      final int shuffleId, final int position, final int entries, final long entryBytes) {
    final long bytes = Math.max(CHUNK_BYTES, ShuffleChunk.bytes(entries, entryBytes));
    final Region region = pool.allocate(bytes);
    return new ShuffleChunk(region, shuffleId, position, root.incarnation(), entries);
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
    final OwnShuffle shuffle = shuffles.get(output.shuffleId());
    if (shuffle == null || !shuffle.outputs.remove(output.mapId(), output)) {
      return false;
    }
    output.chunk().unpublish(output.mapId());
    reclaimer.retire(output.regions());
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
      shuffle.outputs.values().forEach(output -> regions.addAll(output.regions()));
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
    final int regions = output.regions().size();
    final long[] segments = new long[regions + shuffle.chunks.size()];
    for (int i = 0; i < segments.length; i++) {
      final Region region =
          i < regions ? output.regions().get(i) : shuffle.chunks.get(i - regions).region();
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

    private void add(final ShuffleChunk chunk) {
      chunks.add(chunk);
    }

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
}
