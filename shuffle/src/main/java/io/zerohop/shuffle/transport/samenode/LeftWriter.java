package io.zerohop.shuffle.transport.samenode;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.catalog.CatalogView.ShuffleView;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.SegmentResolver;
import java.io.IOException;
import java.time.Duration;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Writes to files what executors have left in memory that can be read here, one shuffle after the
 * other, and removes the files that were dropped. One of a keeper. Thread safe; choosing does not
 * wait, and one thread writes.
 */
public final class LeftWriter {
  /** With less of its limit left, a keeper writes what was not read for longest. */
  private static final int LEFT_PART = 8;

  private final LeftFolder folder;
  private final long limit;
  private final Duration unread;

  /** How often shuffles could not be written that are still there. */
  @GuardedBy("this")
  private final Map<Shuffle, Integer> failures = new HashMap<>();

  /** As chosen last. */
  private volatile @Nullable Shuffle next;

  /** A shuffle of one executor. */
  private record Shuffle(LeftMemory memory, int id) {
    boolean isInMemory() {
      return memory.isInMemory(id);
    }

    @Override
    public String toString() {
      return "shuffle " + id + " of " + memory;
    }
  }

  /**
   * @param limit most bytes that the keeper holds in memory
   * @param unread after how long what nobody reads is written
   */
  public LeftWriter(final LeftFolder folder, final long limit, final Duration unread) {
    this.folder = folder;
    this.limit = limit;
    this.unread = unread;
  }

  /**
   * Chooses what is written next. If memory is short that is anything, otherwise what nobody has
   * read for long, and what is to leave a GPU. What could not be written comes last, and what was
   * not read for longest first. Has copied what lies in GPU memory and is to be written.
   *
   * @param executors used by the calling thread
   * @param isMemoryShort whether the machine's or container's memory is
   * @return whether there is something
   */
  public synchronized boolean choose(
      final Collection<KeptExecutor> executors, final boolean isMemoryShort) {
    failures.keySet().removeIf(shuffle -> !shuffle.isInMemory());
    if (!folder.isUsable()) {
      next = null;
      return false;
    }
    final long least = isMemoryShort || isLimitReached(executors) ? 0 : unread.toNanos();
    final List<LeftMemory> all =
        executors.stream().map(KeptExecutor::left).filter(Objects::nonNull).toList();
    all.stream()
        .filter(memory -> memory.copies().isLeaving() || memory.unreadNanos() >= unread.toNanos())
        .filter(this::fits)
        .forEach(memory -> memory.copies().want());
    next =
        all.stream()
            .flatMap(memory -> due(memory, least).map(id -> new Shuffle(memory, id)))
            .min(
                Comparator.comparingInt(this::failuresOf)
                    .thenComparingLong(shuffle -> -shuffle.memory.unreadNanos()))
            .orElse(null);
    return next != null;
  }

  /** Whether there is something to copy, for which files have room. */
  private boolean fits(final LeftMemory memory) {
    final long bytes = memory.uncopied().values().stream().mapToLong(size -> size).sum();
    return bytes > 0 && bytes <= folder.limit() - folder.bytes();
  }

  private static Stream<Integer> due(final LeftMemory memory, final long least) {
    final boolean isUnread = memory.unreadNanos() >= least;
    return isUnread || memory.copies().isLeaving() ? memory.spillable(!isUnread) : Stream.empty();
  }

  private synchronized int failuresOf(final Shuffle shuffle) {
    return failures.getOrDefault(shuffle, 0);
  }

  private boolean isLimitReached(final Collection<KeptExecutor> executors) {
    final long leaving = executors.stream().mapToLong(KeptExecutor::leavingBytes).sum();
    final long held = executors.stream().mapToLong(KeptExecutor::heldBytes).sum();
    return limit - held + leaving < limit / LEFT_PART
        || leaving == 0 && executors.stream().anyMatch(KeptExecutor::isRefused);
  }

  /** Whether {@link #write} has something to do. */
  public boolean isDue() {
    return next != null || folder.hasDropped();
  }

  /**
   * Writes what was chosen to a file, from which it is served then. Its memory goes once all who
   * may look for it there have ended. What cannot be written stays in memory. Removes files that
   * were dropped. Waits for the disk, so it is called without a lock.
   */
  public void write() {
    folder.free(); // First: there may be no room otherwise.
    final Shuffle shuffle = next;
    if (shuffle != null && shuffle.isInMemory()) {
      write(shuffle);
    }
    folder.free();
  }

  private void write(final Shuffle shuffle) {
    final LeftMemory memory = shuffle.memory;
    final Map<Long, SegmentMemory> mapped = new HashMap<>();
    final SegmentResolver segments = id -> mapped.computeIfAbsent(id, memory.segments()::map);
    try {
      final Set<Long> maps = memory.outputs().get(shuffle.id);
      final ShuffleView view = memory.view(shuffle.id, segments);
      if (maps != null && view != null) {
        memory.moved(
            shuffle.id,
            LeftFile.write(
                folder,
                folder.create(),
                view,
                maps,
                segments,
                shuffle::isInMemory,
                cause -> memory.lost(shuffle.id, cause)));
      }
    } catch (final IOException | ZerohopException | OutOfMemoryError e) {
      if (isFailureOf(shuffle)) {
        folder.failed(shuffle.toString(), e);
      }
    } finally {
      mapped.values().forEach(SegmentMemory::close);
    }
  }

  /** Counts a failure, unless the shuffle was dropped meanwhile, which explains it. */
  private synchronized boolean isFailureOf(final Shuffle shuffle) {
    return shuffle.isInMemory() && failures.merge(shuffle, 1, Integer::sum) > 0;
  }
}
