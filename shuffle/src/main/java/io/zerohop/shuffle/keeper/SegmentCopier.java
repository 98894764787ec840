package io.zerohop.shuffle.keeper;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.Device;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.posix.Deadline;
import io.zerohop.shuffle.block.Location;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Copies GPU memory that an executor has left into host memory that its keeper gives for that. Runs
 * where there is a GPU, which a keeper does not use itself: a context takes GPU memory as long as
 * its process lives, and a GPU that fails would take the keeper along.
 */
public final class SegmentCopier {
  private static final Duration CONNECT_LIMIT = Duration.ofSeconds(5);
  private static final Duration REQUEST_LIMIT = Duration.ofSeconds(5);
  private static final Duration PAUSE = Duration.ofMillis(5);

  private SegmentCopier() {}

  /**
   * The segments to copy, and where the keeper serves them.
   *
   * @param socket at which the keeper serves what the executor has left
   * @param name of that socket
   * @param gpu by its UUID
   * @param segments their ids
   */
  public record Order(Path socket, String name, String gpu, List<Long> segments) {}

  /**
   * Copies, one segment after the other, and tells the keeper of each. Those that it does not have
   * any more are left out. Waits a limited time, also for the keeper to make memory for copies.
   *
   * @param gpu maps the segments
   * @param host maps the memory of the copies
   * @param secret of the application
   * @param limit for the copy of one segment, and for the memory of all copies
   * @throws ZerohopException if one cannot be copied; those before it are
   */
  public static void copy(
      final Order order,
      final Device gpu,
      final Device host,
      final byte[] secret,
      final Duration limit) {
    try (PeerLink keeper =
            PeerLink.connect(order.socket(), Location.COPIER, order.name(), secret, CONNECT_LIMIT);
        CopyStream stream = gpu.openStream(Location.COPIER)) {
      final Deadline deadline = Deadline.in(limit);
      for (final long id : order.segments()) {
        final SegmentHandle memory = keeper.fetch(id, REQUEST_LIMIT);
        final SegmentHandle copy = memory == null ? null : copyOf(id, keeper, deadline);
        if (memory != null && copy != null) {
          copy(memory, copy, gpu, host, stream, order.name(), limit);
          keeper.kept(id, REQUEST_LIMIT); // Behind the end of all that writes to the copy.
        } else if (memory != null) {
          memory.close();
        }
      }
    }
  }

  /** Waits for the memory of a copy; absent if the segment itself has gone meanwhile. */
  private static @Nullable SegmentHandle copyOf(
      final long id, final PeerLink keeper, final Deadline deadline) {
    SegmentHandle copy = keeper.keep(id, REQUEST_LIMIT);
    while (copy == null) {
      final SegmentHandle memory = keeper.fetch(id, REQUEST_LIMIT);
      if (memory == null) {
        return null;
      }
      memory.close();
      if (deadline.isOver()) {
        throw new ZerohopException(
            ZerohopException.Category.RETRY, "the keeper gives no memory for segment " + id);
      }
      LockSupport.parkNanos(PAUSE.toNanos());
      copy = keeper.keep(id, REQUEST_LIMIT);
    }
    return copy;
  }

  private static void copy(
      final SegmentHandle memory,
      final SegmentHandle copy,
      final Device gpu,
      final Device host,
      final CopyStream stream,
      final String owner,
      final Duration limit) {
    try (copy;
        Segment from = gpu.map(memory, owner, PeerAccess.READ);
        Segment to = host.map(copy, owner);
        HostBuffer reached = gpu.pin(to.address(), to.bytes())) {
      final CopyBatch batch = stream.newBatch();
      batch.addByEngine(from.address(), reached.address(), Math.min(from.bytes(), to.bytes()));
      stream.submit(batch);
      stream.synchronize(limit);
    }
  }
}
