package ai.rapids.cudf;

/**
 * What the compiler needs to know of cudf's class of this name; see {@code docs/rapids.md}. Never
 * part of the jar.
 */
public abstract class MemoryBuffer implements AutoCloseable {
  MemoryBuffer() {}

  public final long getLength() {
    throw new AssertionError("a stand-in for the compiler");
  }

  public final long getAddress() {
    throw new AssertionError("a stand-in for the compiler");
  }

  public synchronized void incRefCount() {
    throw new AssertionError("a stand-in for the compiler");
  }

  @Override
  public synchronized void close() {
    throw new AssertionError("a stand-in for the compiler");
  }
}
