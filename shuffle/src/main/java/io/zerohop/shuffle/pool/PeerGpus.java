package io.zerohop.shuffle.pool;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The executors of this node whose GPU memory this one can map. Where most do not (no peer access
 * on the PCI bus, MIG, containers that see one GPU each), what this executor's GPU writes goes to
 * host memory, which all of them map: one copy from the GPU and one to the other GPU, at the bus's
 * rate. Access between two GPUs is mutual, so what holds for their memory is taken to hold for this
 * executor's. Thread safe.
 */
public final class PeerGpus {
  private static final Logger LOG = LoggerFactory.getLogger(PeerGpus.class);

  @GuardedBy("this")
  private final Set<Object> mapped = Collections.newSetFromMap(new IdentityHashMap<>());

  @GuardedBy("this")
  private final Set<Object> refused = Collections.newSetFromMap(new IdentityHashMap<>());

  private volatile boolean unreachable;

  PeerGpus() {}

  /**
   * A segment of a peer's GPU memory was mapped.
   *
   * @param peer stands for the executor, by its identity, until it is lost
   */
  public synchronized void mapped(final Object peer) {
    refused.remove(peer);
    mapped.add(peer);
    decide();
  }

  /** A segment of a peer's GPU memory could not be mapped. It holds until one can. */
  public synchronized void refused(final Object peer) {
    mapped.remove(peer);
    refused.add(peer);
    decide();
  }

  /** A peer is gone. */
  public synchronized void lost(final Object peer) {
    mapped.remove(peer);
    refused.remove(peer);
    decide();
  }

  @GuardedBy("this")
  private void decide() {
    final boolean before = unreachable;
    unreachable = refused.size() > mapped.size() || (before && mapped.isEmpty());
    if (unreachable != before) {
      LOG.info(
          "{} executors of this node can map each other's GPU memory, so the GPU's map outputs go"
              + " to {} memory from now on",
          unreachable ? "too few" : "most",
          unreachable ? "host" : "GPU");
    }
  }

  /** Returns whether most executors that were met cannot read this one's GPU memory in place. */
  public boolean unreachable() {
    return unreachable;
  }
}
