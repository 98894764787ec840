package io.zerohop.shuffle.transport.ucx.memory;

import io.zerohop.device.Device;
import io.zerohop.device.Undo;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.remote.Slabs.Slab;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxMemory;
import io.zerohop.shuffle.transport.ucx.memory.TransferMemory.GpuSlabs.GpuSlab;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Memory that peers read at first contact: whether they can, whether what they get is right, and
 * how fast it comes. Its bytes follow from this executor's incarnation, which peers know. Allocated
 * when a peer asks first. Thread safe; owns the memory.
 */
public final class TestRange implements AutoCloseable {
  /** Bytes of it: more than any threshold of libucx between its ways to move bytes. */
  public static final int BYTES = 16 << 20;

  /** Bytes that are read where libucx has shown before that it gets all of them right. */
  public static final int FEWER_BYTES = 1 << 20;

  private final UcxEngine engine;
  private final Device device;
  private final Tier kind;
  private final long seed;

  /** Absent before a peer has asked, and after the end. */
  private @Nullable PatternMemory memory;

  private @Nullable UcxMemory registered;
  private boolean closed;

  /**
   * @param device whose memory it is, or whose receive buffers
   * @param kind of memory
   * @param seed that its bytes follow from: the incarnation of this executor
   */
  public TestRange(final UcxEngine engine, final Device device, final Tier kind, final long seed) {
    this.engine = engine;
    this.device = device;
    this.kind = kind;
    this.seed = seed;
  }

  /**
   * What UCX knows it by.
   *
   * @throws io.zerohop.device.ZerohopException if there is no such memory now, or UCX refuses it
   */
  public synchronized UcxMemory registered() {
    if (closed) {
      throw new IllegalStateException("this executor is shutting down");
    }
    PatternMemory range = memory;
    if (range == null) {
      range = allocate(BYTES);
      memory = range;
      range.fill(seed);
    }
    UcxMemory known = registered;
    if (known == null) {
      known = engine.register(kind, range.address(), BYTES);
      registered = known;
    }
    return known;
  }

  /** Where it begins; {@link #registered} was called before. */
  public synchronized long address() {
    return Objects.requireNonNull(memory, "nobody has asked for it").address();
  }

  /**
   * Memory of the same kind for test reads of one peer.
   *
   * @param bytes of the largest read
   * @return the caller's to release
   * @throws io.zerohop.device.ZerohopException if there is none now, or UCX refuses it
   */
  public Destination destination(final int bytes) {
    final PatternMemory target = allocate(bytes);
    try (Undo undo = new Undo(target)) {
      final UcxMemory known =
          kind == Tier.DEVICE ? engine.register(kind, target.address(), bytes) : null;
      return undo.keep(new Destination(target, known));
    }
  }

  /** None of the pool's, which a test must not use up. */
  private PatternMemory allocate(final int bytes) {
    return kind == Tier.DEVICE
        ? PatternMemory.segment(device, bytes)
        : PatternMemory.hostBuffer(device, bytes);
  }

  /** Frees it; the engine must have ended, so that nothing reads it. Idempotent. */
  @Override
  public synchronized void close() {
    closed = true;
    if (registered != null) {
      registered.close();
      registered = null;
    }
    if (memory != null) {
      memory.close();
      memory = null;
    }
  }

  /**
   * {@link #BYTES} that test reads go to. For one thread. Freed when it was released and no get
   * writes to it any more.
   */
  public static final class Destination {
    private final PatternMemory memory;
    private final Slab slab;

    private Destination(final PatternMemory memory, final @Nullable UcxMemory registered) {
      this.memory = memory;
      slab =
          registered == null
              ? new Slab(memory.address(), memory::close)
              : new GpuSlab(
                  memory.address(),
                  registered,
                  () -> {
                    registered.close();
                    memory.close();
                  });
    }

    /** The place to read to. */
    public Slab slab() {
      return slab;
    }

    /** Overwrites what a get of so many bytes should write, and some bytes behind it. */
    public void prepare(final long bytes) {
      memory.poison(bytes);
    }

    /**
     * Compares what a get has written with the range of a peer.
     *
     * @param seed the peer's incarnation
     * @return the first byte that is wrong, or was written although it was not asked for; -1 if
     *     there is none
     */
    public long firstWrong(final long seed, final long bytes) {
      return memory.firstWrong(seed, 0, bytes);
    }

    /** Gives it back. */
    public void release() {
      slab.release();
    }
  }
}
