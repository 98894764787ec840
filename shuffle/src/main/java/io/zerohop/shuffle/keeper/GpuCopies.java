package io.zerohop.shuffle.keeper;

import io.zerohop.device.Device;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.samenode.KeptExecutor;
import io.zerohop.shuffle.transport.samenode.LeftMemory;
import java.io.IOException;
import java.io.UncheckedIOException;
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

  /** As large as the process that copies may get. */
  private static final long PROCESS_BYTES = 256L << 20;

  private final Keeper.Copier copier;
  private final SocketFolder folder;
  private final Device host;
  private final LongSupplier memory;
  private final Clock clock;
  private Housekeeping.@Nullable Chore chore;
  private Runnable onDropped = () -> {};
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

  /**
   * Begins to copy what is chosen, on a thread of its own.
   *
   * @param onDropped is run when outputs were dropped, since they could not be copied
   */
  void begin(final Housekeeping by, final Runnable onDropped) {
    this.onDropped = onDropped;
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
    next = first(executors, room);
    if (next != null && chore != null) {
      chore.hurry();
    }
  }

  /** One for which readers wait, before one that is to go to a file. */
  private static @Nullable Job first(final List<KeptExecutor> executors, final long room) {
    Job found = null;
    for (final KeptExecutor executor : executors) {
      final LeftMemory left = executor.left();
      if (left != null && left.copies().areWanted()) {
        final Job job = new Job(left, Location.leftSocket(executor.socket()), room);
        if (left.copies().areAwaited()) {
          return job;
        }
        found = found == null ? job : found;
      }
    }
    return found;
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
    boolean wereAwaited = false;
    boolean areAll = false;
    try {
      if (!segments.isEmpty()) { // Not dropped meanwhile.
        copy(job, segments, bytes);
      }
    } catch (final IOException | RuntimeException e) {
      cause = e;
    } finally {
      wereAwaited = job.from.copies().areAwaited(); // Also by who came while it was copied.
      areAll = job.from.copyEnded();
    }
    if (!areAll && !isCancelled) {
      ShuffleCode.LEFT_NOT_COPIED
          .says(
              wereAwaited
                  ? "what an executor has left was not copied from the GPU, and is computed again"
                  : "what an executor has left was not copied from the GPU, and stays there")
          .at(job.from + ", " + bytes + " bytes")
          .because(String.valueOf(cause == null ? "its process did not copy all" : cause))
          .warn(LOG, cause);
      onDropped.run();
    } else if (cause == null && bytes > 0) {
      LOG.info(
          "{} bytes of GPU memory of {} were copied in {} ms",
          bytes,
          job.from,
          Duration.ofNanos(clock.since(begin)).toMillis());
    }
  }

  private void copy(final Job job, final Map<Long, Long> segments, final long bytes)
      throws IOException {
    if (bytes > job.room) {
      throw new IOException(
          "the keeper may hold " + job.room + " bytes more, see spark.zerohop.keeper.size");
    }
    checkMemory(bytes);
    copier.copy(
        new SegmentCopier.Order(
            folder.socket(job.socket), job.socket, job.from.gpu(), List.copyOf(segments.keySet())),
        () -> segments.forEach((id, size) -> allocate(job.from, id, size)),
        START_LIMIT.plusSeconds(bytes / BYTES_PER_SECOND),
        () -> isCancelled);
  }

  /** Takes some time: all pages are made. */
  private void allocate(final LeftMemory from, final long segmentId, final long bytes) {
    final boolean isGone = !from.uncopied().containsKey(segmentId);
    if (isCancelled || isGone || from.copies().hasMemoryFor(segmentId)) {
      return;
    }
    try {
      checkMemory(bytes);
    } catch (final IOException e) {
      throw new UncheckedIOException(e);
    }
    from.addCopy(segmentId, host.allocate(bytes));
  }

  private void checkMemory(final long bytes) throws IOException {
    final long available = memory.getAsLong();
    if (bytes > available - DriverReports.leastMemory() - PROCESS_BYTES) {
      throw new IOException("host memory is short: " + available + " bytes are available");
    }
  }

  /** Ends what is under way soon, and begins nothing more. */
  void cancel() {
    isCancelled = true;
  }
}
