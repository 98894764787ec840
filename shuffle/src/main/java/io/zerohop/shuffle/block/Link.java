package io.zerohop.shuffle.block;

import io.zerohop.device.Topology.Reach;
import java.util.Locale;

/**
 * The link that a block's bytes take to the reader: a {@link BlockPath}, with kinds of peers
 * distinguished.
 */
public enum Link {
  /** The reader's own memory. */
  LOCAL(BlockPath.LOCAL, 0),
  /** Memory of a GPU that owner and reader share. */
  PEER_GPU(BlockPath.PEER, 150_000_000_000L),
  /** Another GPU's memory, over NVLink; of each link of the third generation and later. */
  PEER_NVLINK(BlockPath.PEER, 15_000_000_000L),
  /** Another GPU's memory, over the PCI bus; third generation, 16 lanes. */
  PEER_PCIE(BlockPath.PEER, 10_000_000_000L),
  /** Host memory of another executor of the node; with blocks' checksums, by one thread. */
  PEER_HOST(BlockPath.PEER, 2_000_000_000L),
  /** Another GPU's memory; NVML does not tell over what. */
  PEER(BlockPath.PEER, 0),
  /** UCX. */
  UCX(BlockPath.UCX, 0),
  /** Messages over Spark's connections. */
  SENT(BlockPath.SENT, 0),
  /** Spark's block transfer service, or a file. */
  STAGED(BlockPath.STAGED, 0);

  private final BlockPath path;
  private final long expected;

  Link(final BlockPath path, final long expected) {
    this.path = path;
    this.expected = expected;
  }

  /** Returns the path that it belongs to. */
  public BlockPath path() {
    return path;
  }

  /**
   * Returns the bytes a second that such a link has at least on an idle machine, or 0 if unknown:
   * three fifths of the wire, of one link if there may be several.
   */
  public long expected() {
    return expected;
  }

  /** Returns the name as in metrics and reports, such as {@code peer.nvlink}. */
  public String label() {
    return name().toLowerCase(Locale.ROOT).replace('_', '.');
  }

  /** Returns the link of a path whose links are not told apart. */
  public static Link of(final BlockPath path) {
    return valueOf(path.name());
  }

  /** Returns the link to a peer's GPU memory that is mapped here. */
  public static Link toGpu(final Reach reach) {
    return switch (reach) {
      case SAME -> PEER_GPU;
      case NVLINK -> PEER_NVLINK;
      case PCIE -> PEER_PCIE;
      case HOST -> PEER; // It is mapped, so there is a link that is not seen.
    };
  }
}
