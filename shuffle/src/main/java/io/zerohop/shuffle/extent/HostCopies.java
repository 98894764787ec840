package io.zerohop.shuffle.extent;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.StreamPool;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Tier;
import java.time.Duration;
import java.util.function.ObjLongConsumer;

/**
 * Copies in host memory, made by one gather, of blocks that the host cannot read on the GPU. Owns
 * that memory; readable until it is closed.
 */
public final class HostCopies implements AutoCloseable {
  private static final int ALIGNMENT = 8;

  private final HostBuffer buffer;
  private final Runnable onClose;
  private boolean closed;

  private HostCopies(final HostBuffer buffer, final Runnable onClose) {
    this.buffer = buffer;
    this.onClose = onClose;
  }

  /**
   * Copies the device-only extents and makes the list name the copies. If it fails, the list is as
   * it was.
   *
   * @param onClose runs once, when the copies are freed, or at once if there are none
   */
  public static HostCopies gather(
      final Devices devices,
      final ExtentList extents,
      final Duration limit,
      final Runnable onClose) {
    boolean done = false;
    try {
      final HostBuffer buffer =
          gather(
              devices,
              devices.streams(Tier.DEVICE),
              bytes(extents),
              limit,
              (batch, first) -> addTo(batch, extents, first));
      extents.moveTo(buffer.address(), ALIGNMENT);
      done = true;
      return new HostCopies(buffer, onClose);
    } finally {
      if (!done) {
        onClose.run();
      }
    }
  }

  /**
   * Copies bytes of the GPU to a buffer of their own, and waits until all are there.
   *
   * @param streams of the GPU, one of which makes the copies
   * @param bytes of all copies; may be none
   * @param limit of the wait
   * @param copies adds them to a batch, for a buffer that begins at an address
   * @return the buffer, for the caller to close
   */
  public static HostBuffer gather(
      final Devices devices,
      final StreamPool streams,
      final long bytes,
      final Duration limit,
      final ObjLongConsumer<CopyBatch> copies) {
    HostBuffer buffer = null;
    boolean done = false;
    try (CopyStream stream = streams.take()) {
      buffer = devices.of(Tier.DEVICE).hostBuffer(Math.max(1, bytes));
      final CopyBatch batch = stream.newBatch();
      copies.accept(batch, buffer.address());
      stream.submit(batch);
      stream.synchronize(limit);
      done = true;
      return buffer;
    } finally {
      // Behind the stream's end: nothing is under way any more, or a stuck device keeps the memory.
      if (!done && buffer != null) {
        buffer.close();
      }
    }
  }

  private static void addTo(final CopyBatch batch, final ExtentList extents, final long first) {
    long at = first;
    for (int i = 0; i < extents.size(); i++) {
      if (extents.isDeviceOnly(i)) {
        batch.add(extents.address(i), at, extents.length(i));
        at += aligned(extents.length(i));
      }
    }
  }

  /**
   * Gives extents, in order, where the host reads them; copies of the device-only ones are there
   * during this call only.
   *
   * @param check runs when these are there, before the first of all is given
   */
  public static void forEach(
      final Devices devices,
      final ExtentList extents,
      final Duration limit,
      final Runnable check,
      final ExtentConsumer consumer) {
    final HostCopies copies =
        extents.hasDeviceOnly() ? gather(devices, extents, limit, () -> {}) : null;
    try (copies) {
      check.run();
      extents.forEach(consumer);
    }
  }

  /** Returns the bytes that copies of these extents take. */
  public static long bytes(final ExtentList extents) {
    long bytes = 0;
    for (int i = 0; i < extents.size(); i++) {
      bytes += extents.isDeviceOnly(i) ? aligned(extents.length(i)) : 0;
    }
    return bytes;
  }

  private static long aligned(final int length) {
    return (length + ALIGNMENT - 1L) / ALIGNMENT * ALIGNMENT;
  }

  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      buffer.close();
      onClose.run();
    }
  }
}
