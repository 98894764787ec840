package io.zerohop.shuffle.transport.ucx.engine;

import java.util.List;
import java.util.Optional;

/**
 * Releases of libucx and what gets with peer error handling, as ours are, do in them over an
 * adapter. docs/rdma.md, section Which libucx, has this table and how each line is known; a test
 * holds both together.
 *
 * @param first the first minor release of 1.x
 * @param last the last one
 * @param comesWith distributions that have it, for messages; empty if none is known
 */
public record LibucxRelease(int first, int last, String comesWith, Gets gets) {
  /** All that are known, in order. */
  public static final List<LibucxRelease> TABLE =
      List.of(
          new LibucxRelease(13, 13, "Debian 12", Gets.ONE_SIDED),
          new LibucxRelease(14, 15, "", Gets.ONE_SIDED),
          new LibucxRelease(16, 16, "Ubuntu 24.04", Gets.EMULATED_UNLESS_SET),
          new LibucxRelease(17, 17, "", Gets.EMULATED_UNLESS_SET),
          new LibucxRelease(18, 18, "Debian 13", Gets.EMULATED_UNLESS_SET),
          new LibucxRelease(19, 22, "", Gets.ONE_SIDED),
          new LibucxRelease(23, 23, "Debian unstable", Gets.NONE));

  private static final int MAJOR = 1;

  /** What becomes of a get. */
  public enum Gets {
    /** An adapter does it. */
    ONE_SIDED,
    /** By messages, but for contexts whose newer protocols are off, as ours are. */
    EMULATED_UNLESS_SET,
    /** The packaged library has no verbs, so adapters are not used at all. */
    NONE
  }

  /**
   * The line of a version.
   *
   * @param version as {@link io.zerohop.device.posix.UcpLibrary#version} has it
   * @return empty if none is known of it
   */
  public static Optional<LibucxRelease> of(final int version) {
    final int minor = version >> 8 & 0xff;
    return version >> 16 != MAJOR
        ? Optional.empty()
        : TABLE.stream().filter(it -> it.first <= minor && minor <= it.last).findFirst();
  }
}
