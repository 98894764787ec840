package io.zerohop.shuffle.write;

import io.zerohop.device.CopyStream;
import io.zerohop.device.Crc32c;
import io.zerohop.device.Message;
import io.zerohop.device.Transitions;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.DamagedOutputException;
import io.zerohop.shuffle.catalog.BatchImage;
import io.zerohop.shuffle.catalog.Catalog;
import io.zerohop.shuffle.catalog.Catalog.Registration;
import io.zerohop.shuffle.catalog.OwnOutput;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.extent.ExtentList;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.extent.HostCopies;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.pool.Region;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.pool.Tiers;
import java.lang.ref.Reference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * One map task's output while it is being written: batch after batch is packed into the pools, then
 * all of it is published at once. Not thread safe; belongs to one task's thread, which closes it.
 *
 * <p>Owns the regions of its batches until {@link #commit} hands them to the catalog.
 */
public final class MapOutputWriter implements AutoCloseable {
  /** The owner of the batches' regions. */
  enum State {
    /** The writer's: it takes batches, gives them out, and frees them unless it is published. */
    WRITING,

    /** The catalog's: nothing is added or read here any more, not even if the commit then fails. */
    PUBLISHED,

    /** The catalog's if it was published; else freed, or nobody's if copies into them never end. */
    CLOSED;

    static final Transitions<State> TRANSITIONS =
        new Transitions<>(Map.of(WRITING, Set.of(PUBLISHED, CLOSED), PUBLISHED, Set.of(CLOSED)));
  }

  private final Devices devices;
  private final Tiers tiers;

  /** Of blocks that come from the host; those of the GPU go to the GPU's pool. */
  private final Tier tier;

  private final Catalog catalog;

  /** Absent if an output is published when its copies have ended. */
  private final @Nullable CopyCompletions completions;

  private final Duration limit;
  private final boolean checksum;
  private final Consumer<MapOutputWriter> onClose;
  private final int shuffleId;
  private final long mapId;
  private final int partitions;
  private final Registration registration;
  private final List<BatchImage> batches = new ArrayList<>();

  private final Packer packer;

  /** Whether a batch of the GPU's lies in host memory. */
  private boolean onHost;

  private long overflowedBytes;
  private State state = State.WRITING;

  /**
   * State that all writers of a node share.
   *
   * @param completions absent if commits wait for copies
   */
  public record Parts(
      Config conf,
      Devices devices,
      Tiers tiers,
      Catalog catalog,
      @Nullable CopyCompletions completions) {}

  public MapOutputWriter(
      final Parts node,
      final Tier tier,
      final int shuffleId,
      final long mapId,
      final int partitions,
      final Consumer<MapOutputWriter> onClose) {
    this.devices = node.devices();
    this.tiers = node.tiers();
    this.tier = tier;
    this.catalog = node.catalog();
    this.completions = node.completions();
    this.limit = node.conf().device().timeout();
    this.checksum = node.conf().checksum();
    this.onClose = onClose;
    this.shuffleId = shuffleId;
    this.mapId = mapId;
    this.partitions = partitions;
    this.registration = catalog.registration(shuffleId);
    this.packer = new Packer(devices, tier, limit);
  }

  /**
   * Packs one batch into one region. What comes from the host may be used for other things when
   * this returns. What comes from the GPU is copied in the order of the calling thread's stream, so
   * it may be freed in that order at once; where the GPU's pool is full it goes to the host's.
   *
   * @throws PoolFullException (FALLBACK) if there is no room; earlier batches stay as they are
   */
  public void append(final PackSource source) {
    addAll(place(source));
  }

  /**
   * Packs one batch of the GPU's, and what the host has to say of each of its blocks: a block gets
   * an extent of {@code header} and one of {@code payload}, in this order. The payload goes to the
   * GPU's pool, and where that is full to the host's. It is copied in the order of the calling
   * thread's stream, so it may be freed in that order at once.
   *
   * @throws PoolFullException (FALLBACK) if there is no room; earlier batches stay as they are
   */
  public void append(final PackSource header, final PackSource payload) {
    final BatchImage blocks = place(payload);
    boolean done = false;
    try {
      addAll(place(header), blocks);
      done = true;
    } finally {
      if (!done && blocks != null) {
        abandon(blocks.region());
      }
    }
  }

  private void addAll(final @Nullable BatchImage... images) {
    for (final BatchImage image : images) {
      if (image != null) {
        batches.add(image);
      }
    }
  }

  /** Packs a source into a region of its own, unless it is empty. */
  private @Nullable BatchImage place(final PackSource source) {
    try {
      return measureAndPack(source);
    } finally {
      // Its memory may be freed with it, and the copies know nothing but addresses.
      Reference.reachabilityFence(source);
    }
  }

  private @Nullable BatchImage measureAndPack(final PackSource source) {
    checkWriting();
    if (source.partitions() != partitions) {
      throw new IllegalArgumentException(
          "a source of " + source.partitions() + " partitions for an output of " + partitions);
    }
    final BatchImage image = measure(source);
    if (image.bytes() == 0) {
      return null;
    }
    return source.onDevice() ? placeFromGpu(source, image) : place(source, image, tier);
  }

  /** In GPU memory, or in host memory if that is full or peers cannot read it in place. */
  private BatchImage placeFromGpu(final PackSource source, final BatchImage image) {
    if (devices.peerGpus().unreachable()) {
      try {
        final BatchImage shared = place(source, image, Tier.HOST);
        onHost = true;
        return shared;
      } catch (final PoolFullException full) {
        // The GPU may have room. Then the owner copies what peers ask for.
      }
    }
    try {
      return place(source, image, Tier.DEVICE);
    } catch (final PoolFullException e) {
      final BatchImage overflowed = place(source, image, Tier.HOST);
      onHost = true;
      overflowedBytes += image.bytes();
      tiers.overflow().say(shuffleId, Tier.DEVICE, e);
      tiers.overflow().overflowed(image.bytes());
      return overflowed;
    }
  }

  private BatchImage place(final PackSource source, final BatchImage image, final Tier to) {
    final Region region = tiers.of(to).allocate(image.bytes());
    boolean packed = false;
    try {
      packer.pack(source, region, image.bytes());
      packed = true;
    } finally {
      if (!packed) {
        abandon(region);
      }
    }
    image.place(region);
    return image;
  }

  /** Gives a region back into which copies may be under way, once they are not any more. */
  private void abandon(final Region region) {
    packer.end();
    if (!packer.isStuck()) {
      region.release();
    }
  }

  private BatchImage measure(final PackSource source) {
    final boolean compute = checksum && !source.onDevice();
    final boolean take = checksum && source.onDevice() && source.hasChecksums();
    final BatchImage image = new BatchImage(partitions, compute || take);
    final Measure measure = new Measure();
    for (int partition = 0; partition < partitions; partition++) {
      measure.length = 0;
      final Crc32c crc = compute ? Crc32c.begin() : null;
      measure.crc = crc;
      source.forEachChunk(partition, measure);
      if (measure.length > Integer.MAX_VALUE - (long) image.bytes()) {
        throw new PoolFullException(
            Message.of("a batch of more than 2 GiB fits no segment")
                .remedy("append smaller batches"),
            measure.length,
            null);
      }
      final int taken = take ? source.checksum(partition) : 0;
      image.add((int) measure.length, crc == null ? taken : crc.value());
    }
    return image;
  }

  /**
   * Gives the extents that a block has in the batches so far, in order; copies of those that the
   * host cannot read are there during this call only.
   *
   * @throws DamagedOutputException if such a copy is not what was written
   */
  public void forEachExtent(final int partition, final ExtentConsumer consumer) {
    checkWriting();
    final ExtentList extents = new ExtentList();
    for (final BatchImage batch : batches) {
      final int length = batch.length(partition);
      if (length > 0) {
        final Region region = batch.region();
        final boolean deviceOnly = !devices.hostAccessible(region.memory());
        extents.add(
            region.address() + batch.start(partition),
            length,
            deviceOnly,
            region.memory(),
            batch.checksums(),
            batch.checksum(partition));
      }
    }
    packer.finish();
    HostCopies.forEach(
        devices,
        extents,
        limit,
        () -> {
          final String damage = extents.firstDamage();
          if (damage != null) {
            throw new DamagedOutputException(
                shuffleId, mapId, "partition " + partition + " " + damage);
          }
        },
        consumer);
  }

  /** Bytes of all batches so far. */
  public long bytes() {
    long bytes = 0;
    for (final BatchImage batch : batches) {
      bytes += batch.bytes();
    }
    return bytes;
  }

  /** Notes that all of this map output goes elsewhere, since the host's pool is full. */
  public void leave(final PoolFullException reason) {
    tiers.overflow().say(shuffleId, Tier.HOST, reason);
  }

  /** Bytes of the GPU's that went to the host, since the GPU's pool was full. */
  public long overflowedBytes() {
    return overflowedBytes;
  }

  /**
   * Publishes the map output: from now on readers find it. It is complete then, or, where the node
   * commits without a wait for the GPU, a word of its entry says when it is.
   *
   * @return bytes of each partition
   * @throws PoolFullException (FALLBACK) if the catalog has no room; the batches stay readable here
   * @throws ZerohopException (RETRY) if the shuffle was unregistered meanwhile
   */
  public long[] commit() {
    checkWriting();
    final long[] lengths = new long[partitions];
    for (final BatchImage batch : batches) {
      for (int partition = 0; partition < partitions; partition++) {
        lengths[partition] += batch.length(partition);
      }
    }
    final CopyStream pending = packer.pending();
    // Not with anything in host memory, which is read there, where nobody waits for a GPU.
    if (completions != null && pending != null && !onHost) {
      publishPending(completions, pending);
    } else {
      packer.finish();
      catalog.publish(shuffleId, mapId, registration, partitions, batches);
      become(State.PUBLISHED);
    }
    close();
    return lengths;
  }

  /** Publishes before copies complete; {@link CopyCompletions} tracks them. */
  private void publishPending(final CopyCompletions followers, final CopyStream pending) {
    final OwnOutput output =
        catalog.publishPending(shuffleId, mapId, registration, partitions, batches);
    become(State.PUBLISHED);
    boolean followed = false;
    try {
      followed = followers.follow(output, pending);
      if (!followed) {
        packer.finish();
        output.ready(devices.host()).raise(OwnOutput.READY_EPOCH);
        output.release();
      }
    } catch (final RuntimeException e) {
      catalog.remove(output); // The task fails: nobody was told where it lies.
      output.ready(devices.host()).abort(CopyCompletions.COPIES_FAILED);
      packer.end();
      if (!packer.isStuck()) {
        output.release();
      }
      throw e;
    }
    if (followed) {
      packer.handOver();
    }
  }

  /** Frees what was written unless it was committed. Idempotent. */
  @Override
  public void close() {
    if (state == State.CLOSED) {
      return;
    }
    final boolean published = state == State.PUBLISHED;
    become(State.CLOSED);
    try {
      packer.end();
    } finally {
      if (!packer.isStuck()) {
        if (!published) {
          batches.forEach(batch -> batch.region().release());
        }
        onClose.accept(this);
      }
    }
  }

  private void become(final State next) {
    state = State.TRANSITIONS.go(state, next, "the writer of " + this);
  }

  private void checkWriting() {
    if (state != State.WRITING) {
      throw new IllegalStateException(
          "the writer of " + this + (state == State.CLOSED ? " is closed" : " has published it"));
    }
  }

  @Override
  public String toString() {
    return "map " + mapId + " of shuffle " + shuffleId;
  }

  private static final class Measure implements ExtentConsumer {
    private long length;
    private @Nullable Crc32c crc;

    @Override
    public void extent(final long address, final int bytes) {
      length += bytes;
      if (crc != null) {
        crc.update(address, bytes);
      }
    }
  }

  /**
   * The bytes that a map task has collected so far, by partition, in its own memory. It is walked
   * more than once while it is packed and must give the same chunks each time. It may own the
   * memory of its chunks: whoever packs it keeps it reachable until their bytes were copied.
   */
  public interface PackSource {

    /** Number of partitions; the same as the map output's. */
    int partitions();

    /** Returns whether its chunks lie in memory of the GPU, and not of this process. */
    default boolean onDevice() {
      return false;
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
}
