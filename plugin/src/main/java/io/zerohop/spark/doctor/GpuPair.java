package io.zerohop.spark.doctor;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.Device;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.Message;
import io.zerohop.device.Segment;
import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import org.agrona.CloseHelper;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Memory of one device that another one has mapped by its descriptor, as executors map peers, and
 * copies. Both may be the same device, which then copies within itself. Owns the memory and the
 * stream, not the devices. Not thread safe.
 */
final class GpuPair implements AutoCloseable {
  private static final Duration LIMIT = Duration.ofSeconds(20);
  private static final int TIMES = 3;
  private static final byte PATTERN = 0x5a;

  private final Device owner;
  private final Device reader;
  private final int bytes;

  /** What is open, the last one first to be closed. */
  private final Deque<AutoCloseable> open = new ArrayDeque<>();

  private final Segment source;
  private final Segment seen;
  private final Segment target;
  private final CopyStream stream;

  /**
   * Allocates and maps.
   *
   * @param bytes to copy, a multiple of either device's granularity
   * @throws ZerohopException if memory cannot be had or mapped; nothing stays behind
   */
  GpuPair(final Device owner, final Device reader, final int bytes) {
    this.owner = owner;
    this.reader = reader;
    this.bytes = bytes;
    try (Undo undo = new Undo(this)) {
      source = keep(owner.allocate(bytes));
      seen = owner == reader ? source : keep(reader.map(source.export(), owner.name()));
      target = keep(reader.allocate(bytes));
      stream = keep(reader.openStream("doctor"));
      undo.done();
    }
  }

  private <T extends AutoCloseable> T keep(final T resource) {
    open.push(resource);
    return resource;
  }

  /**
   * Copies a pattern from the host to the owner, to the reader and back.
   *
   * @throws ZerohopException if it does not come back
   */
  void verify() {
    try (HostBuffer there = owner.hostBuffer(bytes);
        HostBuffer back = reader.hostBuffer(bytes);
        CopyStream writing = owner.openStream("doctor")) {
      new UnsafeBuffer(there.address(), bytes).setMemory(0, bytes, PATTERN);
      new UnsafeBuffer(back.address(), bytes).setMemory(0, bytes, (byte) 0);
      copy(writing, there.address(), source.address());
      copy(stream, seen.address(), target.address());
      copy(stream, target.address(), back.address());
      if (!new UnsafeBuffer(back.address(), bytes)
          .equals(new UnsafeBuffer(there.address(), bytes))) {
        throw new ZerohopException(Category.FALLBACK, "the bytes read differ from those written");
      }
    }
  }

  /** The best of a few copies, in GB/s. */
  double measure() {
    return best(seen.address());
  }

  /** Measures copies out of pinned host memory. */
  double measureFromHost() {
    try (HostBuffer host = reader.hostBuffer(bytes)) {
      return best(host.address());
    }
  }

  private double best(final long from) {
    long least = Long.MAX_VALUE;
    for (int i = 0; i < TIMES; i++) {
      final long begin = System.nanoTime();
      copy(stream, from, target.address());
      least = Math.min(least, System.nanoTime() - begin);
    }
    return (double) bytes / least;
  }

  private void copy(final CopyStream by, final long from, final long to) {
    final CopyBatch batch = by.newBatch();
    batch.add(from, to, bytes);
    by.submit(batch);
    by.synchronize(LIMIT);
  }

  @Override
  public void close() {
    try {
      CloseHelper.closeAll(open);
    } catch (final RuntimeException e) {
      throw new ZerohopException(
          Category.FALLBACK, Message.of("memory cannot be freed").because(e), e);
    } finally {
      open.clear();
    }
  }
}
