package io.zerohop.shuffle;

import io.zerohop.device.CopyStream;
import io.zerohop.device.Device;
import io.zerohop.device.Device.FabricReach;
import io.zerohop.device.DeviceMemoryException;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.Message;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.Signal;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.host.HostDevice;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongConsumer;

/**
 * A device whose memory the host cannot reach: whoever touches one of its addresses dies of it. Its
 * copies reach its own memory and its host buffers, nothing else.
 */
public final class DeviceOnlyGpu implements Device {
  /** Beyond what a process can address. */
  private static final long FAR = 1L << 56;

  private final HostDevice near = new HostDevice();

  /** Null if it is in none. */
  private final FakeFabric fabric;

  private final Map<Long, Long> buffers = new ConcurrentSkipListMap<>();

  /** Streams that were given copies and have not been waited for. */
  private final Set<FarStream> busy = ConcurrentHashMap.newKeySet();

  private final AtomicInteger maps = new AtomicInteger();
  private final AtomicInteger pins = new AtomicInteger();
  private final AtomicInteger flushes = new AtomicInteger();
  private volatile AdapterWrites adapterWrites = AdapterWrites.ORDERED;
  private volatile boolean refusesPins;
  private volatile boolean refusesBuffers;
  private volatile boolean refusesExports;
  private volatile boolean holdsExports;
  private volatile boolean refusesMaps;
  private volatile boolean refusesLoans;
  private volatile String failing = "";
  private volatile Failure failure = Failure.NONE;
  private volatile boolean interruptNext;
  private volatile boolean closed;
  private volatile Segment brake;

  /** A device that is in no fabric. */
  public DeviceOnlyGpu() {
    this(null);
  }

  /** A device of a clique. */
  public DeviceOnlyGpu(final FakeFabric fabric) {
    this.fabric = fabric;
  }

  @Override
  public FabricReach fabric() {
    return fabric == null ? Device.super.fabric() : fabric.reach();
  }

  /** The fabric that it is in; null if it is in none. */
  FakeFabric fabricOf() {
    return fabric;
  }

  /** From now on it says so of what adapters write to it. */
  public void adapterWrites(final AdapterWrites said) {
    adapterWrites = said;
  }

  @Override
  public AdapterWrites adapterWrites() {
    return adapterWrites;
  }

  @Override
  public void flushAdapterWrites() {
    if (adapterWrites == AdapterWrites.FLUSHED) {
      flushes.incrementAndGet();
    }
  }

  /** How often adapters' writes were flushed. */
  public int flushes() {
    return flushes.get();
  }

  /** Has all that its streams are given from now on wait, as on a GPU that is busy. */
  public void hold() {
    brake = near.allocate(Signal.BYTES);
  }

  /** Lets go on what waits. */
  public void letGo() {
    near.signal(brake, 0).raise(1);
  }

  /** Ends the next wait for a stream before its copies are done. */
  void interruptNext() {
    interruptNext = true;
  }

  /** Whether the wait that is asked about is the one to be ended before its copies are done. */
  boolean takeInterrupt() {
    final boolean taken = interruptNext;
    interruptNext = false;
    return taken;
  }

  /** Has a stream wait until it is let go, if it is to be held. */
  void holdUp(final CopyStream stream) {
    if (brake != null) {
      stream.await(near.signal(brake, 0), 1, Duration.ofMinutes(1));
    }
  }

  /** A stream has copies that have not been waited for. */
  void begin(final FarStream stream) {
    busy.add(stream);
  }

  /** A stream has none any more. */
  void end(final FarStream stream) {
    busy.remove(stream);
  }

  boolean isClosed() {
    return closed;
  }

  @Override
  public String name() {
    return "far";
  }

  @Override
  public Segment allocate(final long bytes, final PeerAccess access) {
    return new FarSegment(near.allocate(bytes, access), this);
  }

  @Override
  public Segment map(final SegmentHandle handle, final String owner, final PeerAccess access) {
    if (refusesMaps) {
      throw new ZerohopException(ZerohopException.Category.FALLBACK, "it has no peer access");
    }
    maps.incrementAndGet();
    if (handle.kind() != SegmentHandle.Kind.FABRIC) {
      return new FarSegment(near.map(handle, owner, access), this);
    }
    final Segment mapped = near.map(fabric.open(handle), owner, access);
    fabric.mapped(handle, mapped);
    return new FarSegment(mapped, this);
  }

  @Override
  public Segment borrow(final SegmentHandle handle, final String lender) {
    if (refusesMaps || refusesLoans) {
      handle.close();
      throw new ZerohopException(ZerohopException.Category.FALLBACK, "it has no peer access");
    }
    return new FarSegment(near.borrow(handle, lender), this);
  }

  @Override
  public long granularity() {
    return near.granularity();
  }

  @Override
  public boolean hostAccessible() {
    return false;
  }

  @Override
  public HostBuffer hostBuffer(final long bytes) {
    if (refusesBuffers) {
      throw new DeviceMemoryException(Message.of("no pinned memory"), bytes, null);
    }
    final HostBuffer buffer = near.hostBuffer(bytes);
    buffers.put(buffer.address(), buffer.bytes());
    return new ReachedBuffer(
        buffer.address(),
        buffer.bytes(),
        () -> {
          if (busy.stream().anyMatch(stream -> stream.touches(buffer.address()))) {
            throw new AssertionError("memory is freed while copies are under way");
          }
          buffers.remove(buffer.address());
          buffer.close();
        });
  }

  /** What becomes of a thread's copies. */
  enum Failure {
    NONE,
    REFUSED,
    TIMED_OUT,

    /** None fails; who waits for them is late to see it. */
    LATE,

    /** The GPU cannot be used any more. */
    BROKEN,

    /** They are late for every wait, and never end: not even a stream's close ends them. */
    STUCK,

    /** The process has no memory left to say that copies have ended. */
    OUT_OF_MEMORY
  }

  /** Fails all copies of a thread from now on. */
  void fail(final String thread, final Failure how) {
    failing = thread;
    failure = how;
  }

  /** Whether copies of the calling thread fail in this way. */
  boolean fails(final Failure how) {
    return failure == how && Thread.currentThread().getName().equals(failing);
  }

  /** Whether it refuses to pin from now on. */
  public void refusePins(final boolean refuse) {
    refusesPins = refuse;
  }

  /** Whether there is no pinned memory from now on. */
  void refuseBuffers(final boolean refuse) {
    refusesBuffers = refuse;
  }

  /** Whether it refuses to export segments from now on. */
  void refuseExports(final boolean refuse) {
    refusesExports = refuse;
  }

  /** Whether exports do not end from now on, and with them not the thread that serves peers. */
  void holdExports(final boolean hold) {
    holdsExports = hold;
  }

  /** Whether it refuses to map others' segments from now on, as without peer access. */
  public void refuseMaps(final boolean refuse) {
    refusesMaps = refuse;
  }

  /** How many of others' segments it has mapped since the start. */
  int maps() {
    return maps.get();
  }

  /** Whether it refuses to map what others lend from now on. */
  void refuseLoans(final boolean refuse) {
    refusesLoans = refuse;
  }

  /** Ranges of others' memory that it reaches now. */
  public int pins() {
    return pins.get();
  }

  @Override
  public HostBuffer pin(final long address, final long bytes) {
    if (refusesPins) {
      throw new ZerohopException(ZerohopException.Category.RETRY, "it does not pin");
    }
    pins.incrementAndGet();
    buffers.put(address, bytes);
    return new ReachedBuffer(
        address,
        bytes,
        () -> {
          pins.decrementAndGet();
          buffers.remove(address);
        });
  }

  @Override
  public CopyStream openStream(final String name) {
    return new FarStream(this, near.openStream(name));
  }

  @Override
  public Signal signal(final Segment segment, final long offset) {
    throw new AssertionError("signals lie in host memory");
  }

  @Override
  public Signal pinnedSignal(final Signal word, final long address) {
    reach(address, Signal.BYTES, buffer -> {});
    return word;
  }

  @Override
  public int openResources() {
    return near.openResources();
  }

  @Override
  public void close() {
    if (pins.get() > 0) {
      throw new IllegalStateException("closed with " + pins + " ranges still pinned");
    }
    if (brake != null) {
      brake.close();
    }
    near.close();
    closed = true;
  }

  /** Where the host finds what the device knows by a far address. */
  public static long near(final long address) {
    return address - FAR;
  }

  /**
   * Where the host finds what a stream is to touch.
   *
   * @param touched gets the address of the buffer that it lies in, if it lies in one
   */
  long reach(final long address, final long length, final LongConsumer touched) {
    if (address >= FAR) {
      return address - FAR;
    }
    for (final Map.Entry<Long, Long> buffer : buffers.entrySet()) {
      if (address >= buffer.getKey() && address + length <= buffer.getKey() + buffer.getValue()) {
        touched.accept(buffer.getKey());
        return address;
      }
    }
    throw new AssertionError("the device cannot reach " + Long.toHexString(address));
  }

  private record FarSegment(Segment segment, DeviceOnlyGpu device) implements Segment {
    @Override
    public long address() {
      return FAR + segment.address();
    }

    @Override
    public long bytes() {
      return segment.bytes();
    }

    @Override
    public boolean owned() {
      return segment.owned();
    }

    @Override
    public SegmentHandle export() {
      if (device.refusesExports) {
        throw new ZerohopException(ZerohopException.Category.FALLBACK, "it does not export");
      }
      while (device.holdsExports) {
        LockSupport.parkNanos(1_000_000);
      }
      return segment.export();
    }

    @Override
    public SegmentHandle exportFabric() {
      return device.fabric == null ? null : device.fabric.export(segment);
    }

    @Override
    public void close() {
      if (device.fabric != null) {
        device.fabric.closed(segment);
      }
      segment.close();
    }
  }

  /** Memory of the host that the device reaches until it is closed. */
  private record ReachedBuffer(long address, long bytes, Runnable onClose) implements HostBuffer {
    @Override
    public void close() {
      onClose.run();
    }
  }
}
