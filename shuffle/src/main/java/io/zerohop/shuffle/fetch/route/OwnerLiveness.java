package io.zerohop.shuffle.fetch.route;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.transport.FallbackTransport;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Tests whether an owner is alive although it does not respond, such as one behind a firewall. It
 * connects to the server of its staged blocks, and remembers the result for a while, because every
 * task needs it. Thread safe.
 */
final class OwnerLiveness {
  /**
   * How long one that says nothing may take: long enough for three attempts of the kernel's, and
   * with the limit of the first contact (spark.zerohop.connect.timeout) ten seconds in all.
   */
  private static final Duration LIMIT = Duration.ofSeconds(5);

  private static final Duration MEMORY = Duration.ofSeconds(10);

  private final Clock clock;

  /** When owners answered last, by their incarnation. */
  private final Map<Long, Long> answered = new ConcurrentHashMap<>();

  OwnerLiveness(final Clock clock) {
    this.clock = clock;
  }

  /** Returns whether an owner answers, or did a short time ago. May wait, for a limited time. */
  boolean answers(final BlockSource source, final FallbackTransport staging) {
    final long incarnation = source.location().incarnation();
    final Long last = answered.get(incarnation);
    if (last != null && clock.since(last) < MEMORY.toNanos()) {
      return true;
    }
    final boolean lives = staging.answers(source, LIMIT);
    if (lives) {
      answered.put(incarnation, clock.nanos());
    } else {
      answered.remove(incarnation);
    }
    return lives;
  }
}
