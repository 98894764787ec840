package io.zerohop.device;

/**
 * The mixing of row hashes, on the host as on a GPU (rowhash.cuh). It is the finaliser of
 * splitmix64, "Mix13" of David Stafford's <a
 * href="https://zimbry.blogspot.com/2011/09/better-bit-mixing-improving-on.html">Better Bit
 * Mixing</a>. Its increment is of Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
 * Generators" (OOPSLA 2014).
 */
public final class HashMix {
  private static final long GAMMA = 0x9e3779b97f4a7c15L;
  private static final long FIRST = 0xbf58476d1ce4e5b9L;
  private static final long SECOND = 0x94d049bb133111ebL;

  private HashMix() {}

  /** A one-to-one function by which every bit of a value changes about half of all bits. */
  public static long mix(final long value) {
    long mixed = (value ^ value >>> 30) * FIRST;
    mixed = (mixed ^ mixed >>> 27) * SECOND;
    return mixed ^ mixed >>> 31;
  }

  /** The hash of a sequence that has one more value; the order of values matters. */
  public static long combine(final long hash, final long value) {
    return mix((hash ^ value) + GAMMA);
  }
}
