package io.zerohop.shuffle.fetch;

import io.zerohop.shuffle.transport.BlockMemory;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/**
 * What keeps the blocks of finished fetchers readable until their task ends: of each owner's memory
 * the oldest lease alone, since it also holds what was looked up under later ones (docs/leases.md).
 * So a task that reads one shuffle after the other, hundreds of them perhaps, keeps one lane an
 * owner.
 *
 * <p>One for each task, which closes it when nothing that was read is used any more. Thread safe.
 */
public final class RetainedLeases implements AutoCloseable {
  private final Map<BlockMemory, InPlaceWindow> oldest = new IdentityHashMap<>();
  private final List<Runnable> landings = new ArrayList<>();
  private volatile boolean open = true;

  /** Takes the window over, whose blocks stay readable until {@link #close}. */
  synchronized void add(final InPlaceWindow window) {
    if (!open) {
      window.close();
      return;
    }
    window.retainedBy(this);
    final HostLanding landing = window.takeLanding();
    if (landing != null) {
      landings.add(landing::close); // An older lease does not hold what was copied.
    }
    final InPlaceWindow known = oldest.get(window.memory());
    if (known == null) {
      oldest.put(window.memory(), window);
    } else if (known.isOlderThan(window)) {
      window.close();
    } else {
      oldest.put(window.memory(), window); // First of all, should the closing fail.
      known.close();
    }
  }

  /**
   * Takes over memory that blocks have landed in.
   *
   * @param release gives it back; run once
   */
  void add(final Runnable release) {
    synchronized (this) {
      if (open) {
        landings.add(release);
        return;
      }
    }
    release.run();
  }

  /**
   * Makes sure that what was read was what its owners had written. For the end of a task that
   * succeeded, before {@link #close}. Does not wait.
   *
   * @throws BlockFetchException if an owner may have freed blocks while they could be read; it
   *     names one of them
   * @throws IllegalStateException if already closed
   */
  public synchronized void checkIntact() {
    if (!open) {
      throw new IllegalStateException("the leases have ended; whether they held is not known");
    }
    oldest.values().forEach(InPlaceWindow::checkIntact); // Reads mapped memory: not while closing.
  }

  /** Whether the blocks may still be read. */
  public boolean isOpen() {
    return open;
  }

  /** Leases that are retained. */
  public synchronized int leases() {
    return oldest.size();
  }

  /** Ends all leases, checked or not; blocks must not be read any more. Idempotent. */
  @Override
  public synchronized void close() {
    open = false;
    oldest.values().forEach(InPlaceWindow::close);
    oldest.clear();
    landings.forEach(Runnable::run);
    landings.clear();
  }
}
