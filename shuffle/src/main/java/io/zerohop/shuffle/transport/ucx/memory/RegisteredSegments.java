package io.zerohop.shuffle.transport.ucx.memory;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.SegmentResolver;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.engine.UcxMemory;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Own segments that UCX may read for peers: registered as a whole when the first peer asks, and
 * until the segment is closed. Thread safe.
 */
public final class RegisteredSegments {
  private static final Logger LOG = LoggerFactory.getLogger(RegisteredSegments.class);

  /** What is refused may be taken later, but trying costs time and a line of UCX's each. */
  private static final Duration PAUSE = Duration.ofMinutes(1);

  private final UcxEngine engine;
  private final SegmentResolver segments;
  private final Clock clock;

  /** Segments that UCX did not take, and when. */
  private final Map<Long, Long> refused = new ConcurrentHashMap<>();

  /**
   * @param segments finds own segments
   * @param clock by which it pauses
   */
  public RegisteredSegments(
      final UcxEngine engine, final SegmentResolver segments, final Clock clock) {
    this.engine = engine;
    this.segments = segments;
    this.clock = clock;
  }

  /** The segment, unless it is gone. */
  public @Nullable SegmentMemory memory(final long segmentId) {
    return SegmentIds.tier(segmentId) == null ? null : segments.resolve(segmentId);
  }

  /** The key by which peers read a segment, if it has one. The caller holds a lease on it. */
  public byte @Nullable [] key(final SegmentMemory memory) {
    final UcxMemory registered = registered(memory);
    return registered == null ? null : registered.key();
  }

  /** What UCX knows a segment by, if it can know it. The caller holds something of it. */
  @Nullable UcxMemory registered(final SegmentMemory memory) {
    final Tier kind = SegmentIds.tier(memory.id());
    if (kind == null || kind == Tier.DEVICE && !engine.reachesGpuMemory()) {
      return null;
    }
    final Long last = refused.get(memory.id());
    if (last != null && clock.since(last) < PAUSE.toNanos()) {
      return null;
    }
    try {
      return memory.attach(
          UcxMemory.class, () -> engine.register(kind, memory.address(), memory.bytes()));
    } catch (final UcxException e) {
      if (refused.put(memory.id(), clock.nanos()) == null) {
        ShuffleCode.SEGMENT_NOT_REGISTERED
            .says("cannot register a segment with UCX; its blocks are sent for now")
            .at("segment " + memory.id())
            .because(e)
            .warn(LOG);
      }
      return null;
    }
  }
}
