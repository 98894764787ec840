package io.zerohop.spark.rapids.gpu;

import ai.rapids.cudf.FakeGpu;
import ai.rapids.cudf.GpuQueue;
import io.zerohop.device.CopyStream;
import io.zerohop.device.Device;
import io.zerohop.device.DeviceMemoryException;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.Message;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.Signal;
import io.zerohop.device.host.HostDevice;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A device for the memory of {@link FakeGpu}: the host device, whose copies happen as late as they
 * may, in the order of cudf's work on the same thread, and fail where they touch memory that is not
 * there any more. Its segments count as memory of that GPU.
 */
public final class FakeGpuDevice implements Device {
  private final HostDevice host = new HostDevice();

  /** What its copies reach besides cudf's memory; several may begin at one address. */
  private final Map<Long, PinnedRange> reached = new ConcurrentSkipListMap<>();

  private final AtomicLong buffers = new AtomicLong();
  private volatile boolean stuck;

  private record PinnedRange(long address, long bytes) {}

  @Override
  public String name() {
    return "fake";
  }

  @Override
  public Segment allocate(final long bytes, final PeerAccess access) {
    final long rounded = (bytes + granularity() - 1) / granularity() * granularity();
    if (!FakeGpu.reserve(rounded)) {
      throw new DeviceMemoryException(Message.of("no " + bytes + " bytes are free"), bytes, null);
    }
    boolean done = false;
    try {
      final FakeSegment segment = new FakeSegment(host.allocate(bytes, access), this, rounded);
      done = true;
      return segment;
    } finally {
      if (!done) {
        FakeGpu.giveBack(rounded);
      }
    }
  }

  @Override
  public Segment map(final SegmentHandle handle, final String owner, final PeerAccess access) {
    return new FakeSegment(host.map(handle, owner, access), this, 0);
  }

  @Override
  public Segment borrow(final SegmentHandle handle, final String lender) {
    return new FakeSegment(host.borrow(handle, lender), this, 0);
  }

  @Override
  public long granularity() {
    return host.granularity();
  }

  @Override
  public boolean hostAccessible() {
    return false;
  }

  private long reach(final long address, final long bytes) {
    final long key = buffers.incrementAndGet();
    reached.put(key, new PinnedRange(address, bytes));
    return key;
  }

  /** Has streams that are waited for, or closed, from now on say that they do not end. */
  public void stick() {
    stuck = true;
  }

  boolean isStuck() {
    return stuck;
  }

  /** Fails unless all of a range can be touched now. */
  void touch(final long address, final long bytes) {
    final boolean isThere =
        bytes == 0
            || FakeGpu.isLive(address, bytes)
            || reached.values().stream()
                .anyMatch(
                    one -> address >= one.address && address + bytes <= one.address + one.bytes);
    FakeGpu.require(isThere, "the GPU touches memory that is not there, or was freed before");
  }

  @Override
  public HostBuffer hostBuffer(final long bytes) {
    final HostBuffer buffer = host.hostBuffer(bytes);
    return new ReachedBuffer(buffer, reach(buffer.address(), buffer.bytes()));
  }

  @Override
  public HostBuffer pin(final long address, final long bytes) {
    return new ReachedBuffer(host.pin(address, bytes), reach(address, bytes));
  }

  @Override
  public CopyStream openStream(final String name) {
    return new FakeGpuStream(this, host.openStream(name), new GpuQueue());
  }

  @Override
  public CopyStream openThreadStream(final String name) {
    return new FakeGpuStream(this, host.openStream(name), null);
  }

  @Override
  public Signal signal(final Segment segment, final long offset) {
    throw new AssertionError("signals lie in host memory");
  }

  @Override
  public Signal pinnedSignal(final Signal word, final long address) {
    touch(address, Signal.BYTES);
    return word;
  }

  @Override
  public int openResources() {
    return host.openResources();
  }

  @Override
  public void close() {
    host.close();
    FakeGpu.require(reached.isEmpty(), "a device is closed that reaches memory of others");
  }

  private final class ReachedBuffer implements HostBuffer {
    private final HostBuffer buffer;
    private final long key;

    ReachedBuffer(final HostBuffer buffer, final long key) {
      this.buffer = buffer;
      this.key = key;
    }

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
      if (reached.remove(key) != null) {
        buffer.close();
      }
    }
  }

  private static final class FakeSegment implements Segment {
    private final Segment segment;
    private final FakeGpuDevice device;
    private final long reserved;
    private final long key;

    /**
     * @param reserved of the GPU's memory; 0 if it is a peer's
     */
    FakeSegment(final Segment segment, final FakeGpuDevice device, final long reserved) {
      this.segment = segment;
      this.device = device;
      this.reserved = reserved;
      this.key = device.reach(segment.address(), segment.bytes());
    }

    @Override
    public long address() {
      return segment.address();
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
      return segment.export();
    }

    @Override
    public void close() {
      if (device.reached.remove(key) != null) {
        segment.close();
        FakeGpu.giveBack(reserved);
      }
    }
  }
}
