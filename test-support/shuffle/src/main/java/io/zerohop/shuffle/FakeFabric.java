package io.zerohop.shuffle;

import io.zerohop.device.Device.FabricReach;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.exchange.OpaqueHandle;
import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Stands in for the driver where devices hand segments to other nodes of an NVLink fabric. A handle
 * holds nothing: once its segment is closed it cannot be imported, and what was mapped of it is
 * lost. Only copy engines may read what is mapped.
 */
public final class FakeFabric {
  private static final int HANDLE_BYTES = 64;

  private final String clique;
  private final AtomicLong last = new AtomicLong();
  private final Map<Long, Segment> exported = new ConcurrentHashMap<>();

  /** What was mapped, and of which handle. */
  private final Map<Segment, Long> mapped = new ConcurrentHashMap<>();

  /** While set, no import succeeds. */
  public volatile boolean refusesImports;

  /** While set, no export succeeds. */
  public volatile boolean refusesExports;

  /** Run before each copy out of a mapping; may throw to fail it. */
  public volatile Runnable beforeCopy = () -> {};

  /** Copies out of mappings. */
  public final AtomicInteger copies = new AtomicInteger();

  public FakeFabric(final String clique) {
    this.clique = clique;
  }

  FabricReach reach() {
    return new FabricReach(clique, "");
  }

  /** Mappings that stand. */
  public int mappings() {
    return mapped.size();
  }

  /** All that was exported is gone, as if its owner were. */
  public void lose() {
    exported.clear();
  }

  SegmentHandle export(final Segment segment) {
    if (refusesExports) {
      throw new ZerohopException(Category.RETRY, "it does not export");
    }
    final long id = last.incrementAndGet();
    exported.put(id, segment);
    final byte[] bytes = ByteBuffer.allocate(HANDLE_BYTES).putLong(HANDLE_BYTES - 8, id).array();
    return new OpaqueHandle(SegmentHandle.Kind.FABRIC, segment.bytes(), bytes);
  }

  private static long id(final SegmentHandle handle) {
    return ByteBuffer.wrap(handle.opaque()).getLong(HANDLE_BYTES - 8);
  }

  /** What a handle stands for, by a descriptor. */
  SegmentHandle open(final SegmentHandle handle) {
    final Segment segment = exported.get(id(handle));
    if (refusesImports || segment == null) {
      throw new ZerohopException(Category.FALLBACK, "CUDA_ERROR_NOT_PERMITTED (800)");
    }
    return segment.export();
  }

  void mapped(final SegmentHandle handle, final Segment as) {
    mapped.put(as, id(handle));
  }

  /** A segment is closed here, whoever it was exported or mapped by. */
  void closed(final Segment segment) {
    exported.values().removeIf(known -> known == segment);
    mapped.remove(segment);
  }

  private Long handleAt(final long address) {
    for (final Map.Entry<Segment, Long> one : mapped.entrySet()) {
      final long begin = one.getKey().address();
      if (address >= begin && address < begin + one.getKey().bytes()) {
        return one.getValue();
      }
    }
    return null;
  }

  /** A copy engine is to read near memory. */
  void readByEngine(final long address) {
    final Long handle = handleAt(address);
    if (handle == null) {
      throw new AssertionError("what is copied as another node's is not mapped");
    }
    beforeCopy.run();
    copies.incrementAndGet();
    if (!exported.containsKey(handle)) {
      throw new ZerohopException(Category.RETRY, "memory that is gone was read");
    }
  }

  /** A kernel is to read near memory. */
  void readByKernel(final long address) {
    if (handleAt(address) != null) {
      throw new AssertionError("a kernel reads memory that may go at any time");
    }
  }
}
