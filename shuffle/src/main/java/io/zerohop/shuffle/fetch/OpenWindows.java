package io.zerohop.shuffle.fetch;

import io.zerohop.shuffle.block.ReadSide;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The open windows of one reader, each with a lease: for the host the current one and the one
 * before, for the GPU all whose blocks it may still gather. Changed by the thread that holds the
 * fetcher's lock; not thread safe.
 */
final class OpenWindows {
  private final ReadSide side;

  /** Windows whose blocks a reader on the GPU may still gather. */
  private final List<InPlaceWindow> kept = new ArrayList<>();

  private @Nullable InPlaceWindow previous;
  private @Nullable InPlaceWindow current;

  OpenWindows(final ReadSide side) {
    this.side = side;
  }

  /** Returns whether the current window has a block that was not handed out. */
  boolean hasNext() {
    return current != null && current.hasNext();
  }

  /**
   * The current window's next block. With its second one the window before is released.
   *
   * @return absent if there is none
   */
  @Nullable FetchedBlock next() {
    final InPlaceWindow window = current;
    if (window == null || !window.hasNext()) {
      return null;
    }
    if (window.handedOut() > 0) {
      release(previous);
      previous = null;
    }
    return window.next();
  }

  /** Makes a window the current one, which owns it from now on. */
  void open(final InPlaceWindow opened) {
    if (side == ReadSide.DEVICE && current != null) {
      kept.add(current);
      current = null;
    }
    final InPlaceWindow oldest = previous;
    previous = current;
    current = opened;
    release(oldest);
  }

  /**
   * Releases all windows whose blocks were handed out.
   *
   * @throws BlockFetchException if an owner may have freed blocks meanwhile
   */
  void releasePassed() {
    while (!kept.isEmpty()) {
      release(kept.remove(kept.size() - 1));
    }
    final InPlaceWindow before = previous;
    previous = null;
    release(before);
    if (current != null && !current.hasNext()) {
      final InPlaceWindow done = current;
      current = null;
      release(done);
    }
  }

  private static void release(final @Nullable InPlaceWindow old) {
    if (old != null) {
      try {
        old.checkIntact();
      } finally {
        old.close();
      }
    }
  }

  /**
   * Makes sure that what can still be read was what its owner had written. Does not wait.
   *
   * @throws BlockFetchException if an owner may have freed blocks meanwhile
   */
  void checkIntact() {
    kept.forEach(InPlaceWindow::checkIntact);
    for (final InPlaceWindow open : new InPlaceWindow[] {previous, current}) {
      if (open != null) {
        open.checkIntact();
      }
    }
  }

  /** Ends all leases, without a look at what was read under them. */
  void close() {
    kept.forEach(InPlaceWindow::close);
    kept.clear();
    if (previous != null) {
      previous.close();
      previous = null;
    }
    if (current != null) {
      current.close();
      current = null;
    }
  }
}
