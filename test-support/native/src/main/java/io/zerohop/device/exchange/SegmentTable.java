package io.zerohop.device.exchange;

import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.exchange.SegmentServer.PeerInfo;
import io.zerohop.device.exchange.SegmentServer.SegmentDirectory;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/** A directory of segments that counts its peers. Also used by tests of other modules. */
public final class SegmentTable implements SegmentDirectory {
  /** The secret that tests share. */
  public static final byte[] SECRET =
      "a secret for tests of 32 bytes!!".getBytes(StandardCharsets.US_ASCII);

  public final AtomicInteger connected = new AtomicInteger();
  public final AtomicInteger disconnected = new AtomicInteger();

  /** What was told by {@link #failed}, and how many had been disconnected by then. */
  public final List<String> failures = new CopyOnWriteArrayList<>();

  private final Map<Long, Supplier<SegmentHandle>> segments = new ConcurrentHashMap<>();

  public SegmentTable add(final long id, final Segment segment) {
    return add(id, segment::export);
  }

  public SegmentTable add(final long id, final Supplier<SegmentHandle> export) {
    segments.put(id, export);
    return this;
  }

  /** The greeting that {@link #connected} gives. */
  public static byte[] greetingFor(final String name) {
    return ("hello " + name).getBytes(StandardCharsets.US_ASCII);
  }

  @Override
  public byte[] connected(final PeerInfo peer) {
    connected.incrementAndGet();
    return greetingFor(peer.name());
  }

  @Override
  public SegmentHandle export(final long segmentId) {
    final Supplier<SegmentHandle> export = segments.get(segmentId);
    return export == null ? null : export.get();
  }

  @Override
  public void failed(final Throwable cause) {
    failures.add(cause.getMessage() + ", " + disconnected.get() + " disconnected");
  }

  @Override
  public void disconnected(final PeerInfo peer) {
    disconnected.incrementAndGet();
  }
}
