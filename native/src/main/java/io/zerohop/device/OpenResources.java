package io.zerohop.device;

import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;

/** A count of the handles of a device that are not closed yet, by name. Thread safe. */
public final class OpenResources {
  private final String device;
  private final Set<Object> open = ConcurrentHashMap.newKeySet();
  private volatile boolean closed;

  /**
   * @param device names the device in messages
   */
  public OpenResources(final String device) {
    this.device = device;
  }

  /** Enters a resource; its {@code toString} names it. */
  public <T> T add(final T resource) {
    open.add(resource);
    return resource;
  }

  /** Takes a resource out that was closed. */
  public void remove(final Object resource) {
    open.remove(resource);
  }

  public int size() {
    return open.size();
  }

  /**
   * Fails once these are closed.
   *
   * @throws IllegalStateException after {@link #close}
   */
  public void checkOpen() {
    if (closed) {
      throw new IllegalStateException(device + " device is closed");
    }
  }

  /**
   * Ends the device.
   *
   * @return false if it was closed before
   * @throws IllegalStateException if resources are still open; they are named, and it stays open
   */
  public boolean close() {
    if (!open.isEmpty()) {
      final Set<String> names = new TreeSet<>();
      open.forEach(resource -> names.add(resource.toString()));
      throw new IllegalStateException(device + " device closed with " + names + " still open");
    }
    final boolean first = !closed;
    closed = true;
    return first;
  }
}
