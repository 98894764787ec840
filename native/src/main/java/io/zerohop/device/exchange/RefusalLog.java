package io.zerohop.device.exchange;

import java.util.HashSet;
import java.util.Set;
import org.slf4j.Logger;

/**
 * Logs each kind of refusal once per peer, so that a peer that tries again for ever does not fill
 * the disk. Used by one thread.
 */
final class RefusalLog {
  private static final int MAX_KEYS = 1_000;

  private final Logger log;
  private final String server;
  private final Set<String> logged = new HashSet<>();

  RefusalLog(final Logger log, final String server) {
    this.log = log;
    this.server = server;
  }

  /** Logs unless {@code key} was seen before; after 1,000 keys only says that it stops. */
  void log(final String key, final String message) {
    if (logged.size() > MAX_KEYS || !logged.add(key)) {
      return;
    }
    if (logged.size() > MAX_KEYS) {
      log.warn("segment server {} refused too much; further refusals are not logged", server);
    } else {
      log.warn("segment server {} refused {} (logged once)", server, message);
    }
  }
}
