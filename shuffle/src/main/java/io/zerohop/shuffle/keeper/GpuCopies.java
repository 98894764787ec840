package io.zerohop.shuffle.keeper;

import io.zerohop.device.Device;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.host.AvailableMemory;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.samenode.KeptExecutor;
import io.zerohop.shuffle.transport.samenode.LeftMemory;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Decides which GPU memory that executors have left is copied to host memory, and has it done: once
 * executors of other nodes ask, or a file is to have it. One executor's memory at a time. What
 * cannot be copied stays where it is. One of a keeper; chosen under its lock, and copied without.
 */
final class GpuCopies {
  private static final Logger LOG = LoggerFactory.getLogger(GpuCopies.class);
  private static final Duration PERIOD = Duration.ofMillis(250);

  /** As long as a process may take to start and to use a GPU. */
  private static final Duration START_LIMIT = Duration.ofSeconds(30);

  /** Of a slow copy. */
  private static final long BYTES_PER_SECOND = 256L << 20;

  /** So much of the machine's or container's memory is left to others. */
  private static final int SPARE_PART = 20;

  private final Keeper.Copier copier;
  private final SocketFolder folder;
  private final Device host;
  private final LongSupplier memory;
  private final Clock clock;
  private Housekeeping.@Nullable Chore chore;
  private volatile @Nullable Job next;
  private volatile boolean isCancelled;

  /**
   * An executor whose memory is copied next.
   *
   * @param room bytes that the keeper may hold in addition
   */
  private record Job(LeftMemory from, String socket, long room) {}

  /**
   * @param folder of the keeper's sockets; stays the caller's, as do the others
   * @param host has the copies
   * @param memory bytes that the machine or container has available
   */
  GpuCopies(
      final Keeper.Copier copier,
      final SocketFolder folder,
      final Device host,
      final LongSupplier memory,
      final Clock clock) {
    this.copier = copier;
    this.folder = folder;
    this.host = host;
    this.memory = memory;
    this.clock = clock;
  }

  /** Begins to copy what is chosen, on a thread of its own. */
  void begin(final Housekeeping by) {
    chore = by.everyLong("gpu-copies", PERIOD, () -> next != null, this::copy);
  }

  /**
   * Chooses what is copied next. Does not wait.
   *
   * @param executors used by the calling thread
   * @param room bytes that the keeper may hold in addition
   */
  void choose(final List<KeptExecutor> executors, final long room) {
    final Job before = next;
    if (before != null && before.from.copies().areWanted()) {
      return; // It is under way, or about to be.
    }
    next = null;
    for (final KeptExecutor executor : executors) {
      final LeftMemory left = executor.left();
      if (left != null && left.copies().areWanted()) {
        next = new Job(left, Location.leftSocket(executor.socket()), room);
        if (chore != null) {
          chore.hurry();
        }
        return;
      }
    }
  }

  private void copy() {
    final Job job = next;
    if (job == null || !job.from.copies().areWanted()) {
      return;
    }
    final long begin = clock.nanos();
    final Map<Long, Long> segments = job.from.uncopied();
    final long bytes = segments.values().stream().mapToLong(size -> size).sum();
    Throwable cause = null;
    try {
      checkRoom(job, bytes);
      segments.forEach((id, size) -> job.from.addCopy(id, host.allocate(size)));
      copier.copy(
          new SegmentCopier.Order(
              folder.socket(job.socket),
              job.socket,
              job.from.gpu(),
              List.copyOf(segments.keySet())),
          START_LIMIT.plusSeconds(bytes / BYTES_PER_SECOND),
          () -> isCancelled);
    } catch (final IOException | RuntimeException e) {
      cause = e;
    }
    if (job.from.copyEnded()) {
      LOG.info(
          "{} bytes of GPU memory of {} were copied in {} ms",
          bytes,
          job.from,
          Duration.ofNanos(clock.since(begin)).toMillis());
    } else if (!isCancelled) {
      ShuffleCode.LEFT_NOT_COPIED
          .says("the keeper did not copy from the GPU what an executor has left")
          .at(job.from + ", " + bytes + " bytes")
          .because(String.valueOf(cause == null ? "its process did not copy all" : cause))
          .warn(LOG, cause);
    }
  }

  private void checkRoom(final Job job, final long bytes) throws IOException {
    final long spare =
        Math.min(AvailableMemory.machineTotalBytes(), AvailableMemory.limitBytes()) / SPARE_PART;
    if (bytes > job.room) {
      throw new IOException(
          "the keeper may hold " + job.room + " bytes more, see spark.zerohop.keeper.size");
    }
    if (bytes > memory.getAsLong() - spare) {
      throw new IOException("host memory is short: " + memory.getAsLong() + " bytes are available");
    }
  }

  /** Ends what is under way soon, and begins nothing more. */
  void cancel() {
    isCancelled = true;
  }
}
