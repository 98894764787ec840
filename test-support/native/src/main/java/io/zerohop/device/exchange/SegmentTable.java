package io.zerohop.device.exchange;

import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.exchange.SegmentServer.PeerInfo;
import io.zerohop.device.exchange.SegmentServer.SegmentDirectory;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
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

  /** Ids of what is lent now. */
  public final Set<Long> out = ConcurrentHashMap.newKeySet();

  /** Sizes that were asked for. */
  public final List<Long> asked = new CopyOnWriteArrayList<>();

  private final Map<Long, Supplier<SegmentHandle>> segments = new ConcurrentHashMap<>();
  private final Map<Long, Supplier<SegmentHandle>> lendable = new ConcurrentHashMap<>();
  private final AtomicLong loans = new AtomicLong(100);

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

  /** Lends what {@link #lend(Segment)} was given, as often as it is asked for such a size. */
  @Override
  public PeerLink.Loan lend(final PeerInfo peer, final long bytes) {
    asked.add(bytes);
    final Supplier<SegmentHandle> lent = lendable.get(bytes);
    if (lent == null) {
      return null;
    }
    final long id = loans.incrementAndGet();
    out.add(id);
    return new PeerLink.Loan(id, lent.get());
  }

  /** Adds a segment that is lent to those who ask for its size. */
  public SegmentTable lend(final Segment segment) {
    return lend(segment.bytes(), segment::export);
  }

  /** The same by any handle. */
  public SegmentTable lend(final long bytes, final Supplier<SegmentHandle> export) {
    lendable.put(bytes, export);
    return this;
  }

  @Override
  public void returned(final PeerInfo peer, final long segmentId) {
    out.remove(segmentId);
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
