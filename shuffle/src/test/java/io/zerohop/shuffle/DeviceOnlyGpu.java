package io.zerohop.shuffle;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.Device;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.RowHashBatch;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.Signal;
import io.zerohop.device.SpliceBatch;
import io.zerohop.device.WaitException;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.host.HostDevice;
import java.time.Duration;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A device whose memory the host cannot reach: whoever touches one of its addresses dies of it. Its
 * copies reach its own memory and its host buffers, nothing else.
 */
public final class DeviceOnlyGpu implements Device {
  /** Beyond what a process can address. */
  private static final long FAR = 1L << 56;

  private final HostDevice near = new HostDevice();
  private final Map<Long, Long> buffers = new ConcurrentSkipListMap<>();

  /** Streams that were given copies and have not been waited for. */
  private final Set<FarStream> busy = ConcurrentHashMap.newKeySet();

  private final AtomicInteger pins = new AtomicInteger();
  private volatile boolean refusesPins;
  private volatile boolean refusesExports;
  private volatile String failing = "";
  private volatile Failure failure = Failure.NONE;
  private volatile boolean interruptNext;
  private volatile boolean closed;
  private volatile Segment brake;

  /** Has all that its streams are given from now on wait, as on a GPU that is busy. */
  void hold() {
    brake = near.allocate(Signal.BYTES);
  }

  /** Lets go on what waits. */
  void letGo() {
    near.signal(brake, 0).raise(1);
  }

  /** Ends the next wait for a stream before its copies are done. */
  void interruptNext() {
    interruptNext = true;
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
    return new FarSegment(near.map(handle, owner, access), this);
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
    final HostBuffer buffer = near.hostBuffer(bytes);
    buffers.put(buffer.address(), buffer.bytes());
    return new HostBuffer() {
      @Override
      public long address() {
        return buffer.address();
      }

      @Override
      public long bytes() {
        return buffer.bytes();
      }

      @Override
      public void close() {
        if (busy.stream().anyMatch(stream -> stream.touched.contains(buffer.address()))) {
          throw new AssertionError("memory is freed while copies are under way");
        }
        buffers.remove(buffer.address());
        buffer.close();
      }
    };
  }

  /** What becomes of a thread's copies. */
  enum Failure {
    NONE,
    REFUSED,
    TIMED_OUT
  }

  /** Fails all copies of a thread from now on. */
  void fail(final String thread, final Failure how) {
    failing = thread;
    failure = how;
  }

  private boolean fails(final Failure how) {
    return failure == how && Thread.currentThread().getName().equals(failing);
  }

  /** Whether it refuses to pin from now on. */
  public void refusePins(final boolean refuse) {
    refusesPins = refuse;
  }

  /** Whether it refuses to export segments from now on. */
  void refuseExports(final boolean refuse) {
    refusesExports = refuse;
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
    return new HostBuffer() {
      @Override
      public long address() {
        return address;
      }

      @Override
      public long bytes() {
        return bytes;
      }

      @Override
      public void close() {
        pins.decrementAndGet();
        buffers.remove(address);
      }
    };
  }

  @Override
  public CopyStream openStream(final String name) {
    return new FarStream(near.openStream(name));
  }

  @Override
  public Signal signal(final Segment segment, final long offset) {
    throw new AssertionError("signals lie in host memory");
  }

  @Override
  public Signal pinnedSignal(final Signal word, final long address) {
    reach(address, Signal.BYTES, new HashSet<>());
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
   * @param touched gets the buffer that it lies in, if it lies in one
   */
  private long reach(final long address, final long length, final Set<Long> touched) {
    if (address >= FAR) {
      return address - FAR;
    }
    for (final Map.Entry<Long, Long> buffer : buffers.entrySet()) {
      if (address >= buffer.getKey() && address + length <= buffer.getKey() + buffer.getValue()) {
        touched.add(buffer.getKey());
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
      return segment.export();
    }

    @Override
    public void close() {
      segment.close();
    }
  }

  private final class FarBatch implements CopyBatch {
    private final CopyBatch batch;
    private final Set<Long> touched;

    FarBatch(final CopyBatch batch, final Set<Long> touched) {
      this.batch = batch;
      this.touched = touched;
    }

    @Override
    public void add(final long source, final long destination, final long length) {
      batch.add(reach(source, length, touched), reach(destination, length, touched), length);
    }

    @Override
    public int size() {
      return batch.size();
    }

    @Override
    public long bytes() {
      return batch.bytes();
    }

    @Override
    public void clear() {
      batch.clear();
    }
  }

  private final class FarSplice implements SpliceBatch {
    private final SpliceBatch batch;
    private final Set<Long> touched;

    FarSplice(final SpliceBatch batch, final Set<Long> touched) {
      this.batch = batch;
      this.touched = touched;
    }

    @Override
    public void addOffsets(
        final long source, final long destination, final int count, final int delta) {
      batch.addOffsets(
          reach(source, 4L * count, touched),
          reach(destination, 4L * count, touched),
          count,
          delta);
    }

    @Override
    public void beginBits(final long destination) {
      batch.beginBits(reach(destination, 0, touched));
    }

    @Override
    public void addBits(final long source, final int count) {
      batch.addBits(source == 0 ? 0 : reach(source, (count + 7) / 8, touched), count);
    }

    @Override
    public boolean isEmpty() {
      return batch.isEmpty();
    }

    @Override
    public void clear() {
      batch.clear();
    }
  }

  private final class FarStream implements CopyStream {
    private final CopyStream stream;

    /** Buffers that its batches name, since it was last waited for. */
    private final Set<Long> touched = ConcurrentHashMap.newKeySet();

    FarStream(final CopyStream stream) {
      this.stream = stream;
    }

    @Override
    public CopyBatch newBatch() {
      return new FarBatch(stream.newBatch(), touched);
    }

    @Override
    public void submit(final CopyBatch batch) {
      if (fails(Failure.REFUSED)) {
        throw new ZerohopException(ZerohopException.Category.RETRY, "it does not copy");
      }
      busy.add(this);
      if (brake != null) {
        stream.await(near.signal(brake, 0), 1, Duration.ofMinutes(1));
      }
      stream.submit(((FarBatch) batch).batch);
    }

    @Override
    public SpliceBatch newSplice() {
      return new FarSplice(stream.newSplice(), touched);
    }

    @Override
    public void submit(final SpliceBatch batch) {
      busy.add(this);
      stream.submit(((FarSplice) batch).batch);
    }

    @Override
    public RowHashBatch newRowHash() {
      throw new UnsupportedOperationException("rows are hashed by those who write them");
    }

    @Override
    public void submit(final RowHashBatch batch, final long resultAddress) {
      throw new UnsupportedOperationException("rows are hashed by those who write them");
    }

    @Override
    public void await(final Signal signal, final int epoch, final Duration limit) {
      stream.await(signal, epoch, limit);
    }

    @Override
    public void raise(final Signal signal, final int epoch) {
      stream.raise(signal, epoch);
    }

    @Override
    public void synchronize(final Duration limit) {
      if (interruptNext) {
        interruptNext = false;
        throw new WaitException(WaitException.Reason.CANCELLED, "interrupted");
      }
      if (fails(Failure.TIMED_OUT)) {
        throw new WaitException(WaitException.Reason.TIMEOUT, "the copies are not done yet");
      }
      stream.synchronize(limit);
      busy.remove(this);
      touched.clear();
    }

    @Override
    public void close() {
      stream.close();
      busy.remove(this);
      touched.clear();
    }
  }
}
