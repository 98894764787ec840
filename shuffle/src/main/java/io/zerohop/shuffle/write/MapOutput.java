package io.zerohop.shuffle.write;

import io.zerohop.device.CopyStream;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.Transitions;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.DamagedOutputException;
import io.zerohop.shuffle.catalog.Catalog.OwnOutput;
import io.zerohop.shuffle.catalog.Catalog.Registration;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.pool.Tier;
import java.io.IOException;
import java.lang.ref.Reference;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The output of one map task while it is written: memory, then files. Batch after batch is packed
 * into this executor's memory while that has room, and then written to temporary files. {@link
 * #commit} publishes what is in memory, or makes one file of both. So no task fails for lack of
 * memory. Not thread safe; belongs to one task's thread, which closes it.
 *
 * <p>Owns what it was given until {@link #commit} hands it to the catalog, or to a file's keeper.
 */
public final class MapOutput implements AutoCloseable {
  /** The place of the next batch, and the owner of those before. */
  enum State {
    /** Batches go to memory, and are freed unless they are published. */
    IN_MEMORY,

    /** There is no room in memory, now or since before: batches go to temporary files. */
    IN_FILES,

    /** The catalog's: nothing is added or read here any more, not even if the commit then fails. */
    PUBLISHED,

    /** Nothing is left here, but for memory into which copies never end. */
    CLOSED;

    static final Transitions<State> TRANSITIONS =
        new Transitions<>(
            Map.of(
                IN_MEMORY, Set.of(IN_FILES, PUBLISHED, CLOSED),
                IN_FILES, Set.of(CLOSED),
                PUBLISHED, Set.of(CLOSED)));
  }

  private final int shuffleId;
  private final long mapId;
  private final int partitions;

  /** Absent if this executor has none to hold blocks in. */
  private final @Nullable Memory memory;

  /** Absent if an output fails that finds no room in memory. */
  private final @Nullable OverflowFiles files;

  private State state;

  /**
   * The part in memory.
   *
   * @param life of the shuffle, in which this output was begun
   */
  private record Memory(OwnOutputs node, Registration life, PackedBatches batches) {}

  private MapOutput(
      final int shuffleId,
      final long mapId,
      final int partitions,
      final @Nullable Memory memory,
      final @Nullable OverflowFiles files) {
    this.shuffleId = shuffleId;
    this.mapId = mapId;
    this.partitions = partitions;
    this.memory = memory;
    this.files = files;
    this.state = memory == null ? State.IN_FILES : State.IN_MEMORY;
  }

  /**
   * Begins an output in a node's memory. The caller closes the output.
   *
   * @param mapId the map task attempt; no two outputs of a shuffle share it
   * @param partitions reduce partitions of the shuffle
   * @param tier of blocks that come from the host; those of the GPU go to the GPU's pool
   * @param files owned from now on; without, a full pool fails the output
   */
  public static MapOutput of(
      final OwnOutputs node,
      final int shuffleId,
      final long mapId,
      final int partitions,
      final Tier tier,
      final @Nullable OverflowFiles files) {
    final Memory memory =
        new Memory(
            node,
            node.catalog.registration(shuffleId),
            new PackedBatches(node, tier, shuffleId, mapId, partitions));
    final MapOutput output = new MapOutput(shuffleId, mapId, partitions, memory, files);
    node.begun(output, shuffleId);
    return output;
  }

  /**
   * Begins an output of an executor that has no memory to hold blocks in.
   *
   * @param files owned from now on
   */
  public static MapOutput inFiles(
      final int shuffleId, final long mapId, final int partitions, final OverflowFiles files) {
    return new MapOutput(shuffleId, mapId, partitions, null, files);
  }

  /**
   * Takes one batch. What comes from the host may be used for other things when this returns. What
   * comes from the GPU is copied in the order of the calling thread's stream, so it may be freed in
   * that order at once; where the GPU's pool is full it goes to the host's.
   *
   * @throws PoolFullException (FALLBACK) if there is neither room nor files; earlier batches stay
   * @throws IOException if no temporary file takes it
   */
  public void append(final PackSource batch) throws IOException {
    final PackSource headers = batch.headers();
    try {
      if (!pack(headers, batch)) {
        try (HostForm readable = hostForm(headers, batch)) {
          files().spill(readable);
        }
      }
    } finally {
      // Their memory may be freed with them, and who copies it knows nothing but addresses.
      Reference.reachabilityFence(headers);
      Reference.reachabilityFence(batch);
    }
  }

  /** Packs a batch into memory; false if that has no room, now or since before. */
  private boolean pack(final @Nullable PackSource headers, final PackSource batch) {
    checkOpen();
    if (batch.partitions() != partitions) {
      throw new IllegalArgumentException(
          "a source of " + batch.partitions() + " partitions for an output of " + partitions);
    }
    final Memory in = memory;
    if (in == null || state == State.IN_FILES) {
      return false;
    }
    try {
      in.batches.append(headers, batch);
      return true;
    } catch (final PoolFullException e) {
      overflow(in, e);
      return false;
    }
  }

  /** The one rule of a full pool: everything goes to files from now on, if there are some. */
  private void overflow(final Memory left, final PoolFullException reason) {
    if (files == null) {
      throw reason;
    }
    become(State.IN_FILES);
    left.node.tiers.overflow().say(shuffleId, Tier.HOST, reason);
  }

  private OverflowFiles files() {
    if (files == null) {
      throw new IllegalStateException("the output of " + this + " has no files");
    }
    return files;
  }

  private HostForm hostForm(final @Nullable PackSource headers, final PackSource batch) {
    if (!batch.onDevice()) {
      return new HostForm(headers, batch::forEachChunk, null);
    }
    if (memory == null) {
      throw new IllegalArgumentException("a batch on the GPU for an executor without memory");
    }
    return memory.batches.toHost(headers, batch);
  }

  /**
   * Gives the extents that a block has in memory so far, in order; copies of those that the host
   * cannot read are there during this call only.
   *
   * @throws DamagedOutputException if one of them is not what was written
   */
  void forEachExtent(final int partition, final ExtentConsumer consumer) {
    checkOpen();
    if (memory != null) {
      memory.batches.forEachExtent(partition, consumer);
    }
  }

  /** Bytes of the GPU's that lie in host memory, since the GPU's pool was full. */
  public long overflowedBytes() {
    return memory == null ? 0 : memory.batches.overflowedBytes();
  }

  /** Bytes that went to temporary files. */
  public long spilledBytes() {
    return files == null ? 0 : files.spilledBytes();
  }

  /** Completes the output as {@link #commit(PackSource)} does, with no further batch. */
  public long[] commit() throws IOException {
    return commit(null);
  }

  /**
   * Completes the output, and closes it: from now on readers find it. It is complete then, or,
   * where the node commits without a wait for the GPU, a word of its entry says when it is.
   *
   * @param last batch, if there is one more; it saves the way by a temporary file
   * @return bytes of each partition, as stored
   * @throws PoolFullException (FALLBACK) if there is neither room for the batch, or for an entry of
   *     the catalog, nor files; the output is as it was
   * @throws ZerohopException (RETRY) if the shuffle was unregistered meanwhile
   * @throws IOException if no file takes it; the batch was not taken
   */
  public long[] commit(final @Nullable PackSource last) throws IOException {
    checkOpen();
    final PackSource headers = last == null ? null : last.headers();
    try {
      final long[] lengths = complete(headers, last);
      close();
      return lengths;
    } finally {
      Reference.reachabilityFence(headers);
      Reference.reachabilityFence(last);
    }
  }

  private long[] complete(final @Nullable PackSource headers, final @Nullable PackSource last)
      throws IOException {
    final Memory in = memory;
    final int before = in == null ? 0 : in.batches.images().size();
    if ((last == null || pack(headers, last)) && in != null && state == State.IN_MEMORY) {
      try {
        publish(in);
        return in.batches.lengths();
      } catch (final PoolFullException e) {
        // There was room for the bytes, but none for their entry in the catalog.
        in.batches.takeBack(before);
        overflow(in, e);
      }
    }
    // One file, of what is in memory, of temporary files, and of the batch, in this order.
    try (HostForm rest = last == null ? HostForm.EMPTY : hostForm(headers, last)) {
      return files().write(this::forEachExtent, rest);
    }
  }

  private void publish(final Memory in) {
    final CopyStream pending = in.batches.pending();
    final CopyCompletions completions = in.node.completions;
    // Not with anything in host memory, which is read there, where nobody waits for a GPU.
    if (completions != null && pending != null && !in.batches.onHost()) {
      publishPending(in, completions, pending);
    } else {
      in.batches.finish();
      in.node.catalog.publish(shuffleId, mapId, in.life, partitions, in.batches.images(), true);
      become(State.PUBLISHED);
    }
  }

  /** Publishes before copies complete; {@link CopyCompletions} tracks them. */
  private void publishPending(
      final Memory in, final CopyCompletions followers, final CopyStream pending) {
    final OwnOutput output =
        in.node.catalog.publish(shuffleId, mapId, in.life, partitions, in.batches.images(), false);
    become(State.PUBLISHED);
    boolean done = false;
    try {
      if (followers.follow(output, pending)) {
        in.batches.handOver();
      } else {
        in.batches.finish();
        output.ready(in.node.devices.host()).raise(OwnOutput.READY_EPOCH);
        output.release();
      }
      done = true;
    } finally {
      if (!done) {
        in.node.catalog.remove(output); // The task fails: nobody was told where it lies.
        output.ready(in.node.devices.host()).abort(CopyCompletions.COPIES_FAILED);
        in.batches.end(output::release); // Copies that never end are what is thrown.
      }
    }
  }

  /**
   * Frees what was written unless it was committed. Idempotent.
   *
   * @throws ZerohopException (FATAL) if copies never end, each time: what they touch is kept
   */
  @Override
  public void close() {
    if (state == State.CLOSED) {
      if (memory != null) {
        memory.batches.end(() -> {});
      }
      return;
    }
    final boolean published = state == State.PUBLISHED;
    become(State.CLOSED);
    try (files) {
      if (memory != null) {
        memory.batches.end(() -> left(memory, published));
      }
    }
  }

  private void left(final Memory in, final boolean published) {
    if (!published) {
      in.batches.images().forEach(image -> image.region().release());
    }
    in.node.ended(this, shuffleId);
  }

  private void become(final State next) {
    state = State.TRANSITIONS.go(state, next, "the output of " + this);
  }

  private void checkOpen() {
    if (state != State.IN_MEMORY && state != State.IN_FILES) {
      throw new IllegalStateException(
          "the output of " + this + (state == State.CLOSED ? " is closed" : " is committed"));
    }
  }

  @Override
  public String toString() {
    return "map " + mapId + " of shuffle " + shuffleId;
  }

  /**
   * A batch that found no room in memory, where the host reads it.
   *
   * @param headers go ahead of its blocks, if there are some
   * @param copy the memory of its blocks, owned; absent if they lie in the task's memory
   */
  record HostForm(@Nullable PackSource headers, HostBlocks blocks, @Nullable HostBuffer copy)
      implements HostBlocks, AutoCloseable {
    private static final HostForm EMPTY = new HostForm(null, (partition, consumer) -> {}, null);

    @Override
    public void forEachExtent(final int partition, final ExtentConsumer consumer) {
      if (headers != null) {
        headers.forEachChunk(partition, consumer);
      }
      blocks.forEachExtent(partition, consumer);
    }

    @Override
    public void close() {
      if (copy != null) {
        copy.close();
      }
    }
  }

  /** The bytes of a map output's blocks, in memory that the host reads. */
  @FunctionalInterface
  public interface HostBlocks {

    /** Gives the extents of one block, in order; none if it is empty. */
    void forEachExtent(int partition, ExtentConsumer consumer);
  }

  /**
   * A batch that a map task has collected, by partition, in its own memory or on the GPU. It is
   * walked more than once and must give the same chunks each time. It may own the memory of its
   * chunks: whoever packs it keeps it reachable until their bytes were copied.
   */
  public interface PackSource {

    /** Number of partitions; the same as the map output's. */
    int partitions();

    /** Returns whether its chunks lie in memory of the GPU, and not of this process. */
    default boolean onDevice() {
      return false;
    }

    /**
     * Returns what goes ahead of each of its blocks, from memory of this process: an extent of its
     * own. Null if blocks describe themselves. Asked once for each time that the batch is taken,
     * and of use until the next.
     */
    default @Nullable PackSource headers() {
      return null;
    }

    /** Returns whether it knows the checksums of its blocks; only if they lie on the GPU. */
    default boolean hasChecksums() {
      return false;
    }

    /** CRC32C of one partition's bytes; only if it is {@link #hasChecksums}. */
    default int checksum(final int partition) {
      throw new UnsupportedOperationException("its blocks have no checksums");
    }

    /** Gives the chunks of one partition, in order; none if it is empty. */
    void forEachChunk(int partition, ExtentConsumer consumer);
  }

  /**
   * The files of one map output, which take what finds no room in memory. Belongs to the output,
   * which closes it: that deletes all but a file that was written. What cannot be deleted fails no
   * output.
   */
  public interface OverflowFiles extends AutoCloseable {

    /** Writes a batch to a temporary file. */
    void spill(HostBlocks batch) throws IOException;

    /**
     * Writes the map output's file, where readers find it.
     *
     * @param first goes ahead of what was spilled
     * @param last goes behind it
     * @return the bytes of each partition in the file
     */
    long[] write(HostBlocks first, HostBlocks last) throws IOException;

    /** Bytes in temporary files. */
    long spilledBytes();

    @Override
    void close();
  }
}
