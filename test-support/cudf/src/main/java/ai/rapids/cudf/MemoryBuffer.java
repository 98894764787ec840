package ai.rapids.cudf;

/** As cudf's; fails where it is used after it was closed. */
public abstract class MemoryBuffer implements AutoCloseable {
  protected final long address;
  protected final long length;

  /** Of which this is a part, and on which it holds a reference; null if it owns the memory. */
  private final MemoryBuffer whole;

  private int references = 1;

  MemoryBuffer(final long address, final long length, final MemoryBuffer whole) {
    this.address = address;
    this.length = length;
    this.whole = whole;
  }

  public final long getLength() {
    checkOpen();
    return length;
  }

  public final long getAddress() {
    checkOpen();
    return address;
  }

  final void checkOpen() {
    FakeGpu.require(getRefCount() > 0, "a buffer is used that is closed");
  }

  final void checkRange(final long offset, final long bytes) {
    checkOpen();
    FakeGpu.require(
        offset >= 0 && bytes >= 0 && offset + bytes <= length,
        bytes + " bytes at " + offset + " are beyond a buffer of " + length);
  }

  final long reference(final long offset, final long bytes) {
    checkRange(offset, bytes);
    incRefCount();
    return address + offset;
  }

  public synchronized void incRefCount() {
    FakeGpu.require(references > 0, "a reference is taken on a buffer that is closed");
    references++;
  }

  public synchronized int getRefCount() {
    return references;
  }

  @Override
  public synchronized void close() {
    references--;
    if (references < 0) {
      throw new IllegalStateException("Close called too many times " + this);
    }
    if (references == 0) {
      if (whole != null) {
        whole.close();
      } else {
        FakeGpu.free(address);
      }
    }
  }
}
