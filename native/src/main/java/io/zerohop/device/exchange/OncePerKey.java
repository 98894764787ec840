package io.zerohop.device.exchange;

import java.util.HashSet;
import java.util.Set;

/**
 * A record of what was logged, so that a peer that retries for ever does not fill the disk.
 * Bounded: after 1,000 keys nothing is new. Thread safe.
 */
public final class OncePerKey {
  static final int MAX_KEYS = 1_000;

  private final Set<String> seen = new HashSet<>();

  /** True the first time a key is asked for. */
  public synchronized boolean isNew(final String key) {
    return seen.size() < MAX_KEYS && seen.add(key);
  }
}
