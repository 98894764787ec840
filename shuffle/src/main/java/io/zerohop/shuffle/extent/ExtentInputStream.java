package io.zerohop.shuffle.extent;

import java.io.IOException;
import java.io.InputStream;
import java.util.Objects;
import java.util.function.BooleanSupplier;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Reads ranges of mapped memory one after the other, with no buffer in between. Not thread safe;
 * does not own the memory and fails once it is no longer held.
 */
public final class ExtentInputStream extends InputStream {
  private final ExtentList extents;
  private final int end;
  private final BooleanSupplier held;
  private final UnsafeBuffer current = new UnsafeBuffer(0, 0);
  private int next;
  private int position;

  /**
   * @param from index of the first extent
   * @param end index behind the last extent
   * @param held whether the memory may still be read
   */
  public ExtentInputStream(
      final ExtentList extents, final int from, final int end, final BooleanSupplier held) {
    this.extents = extents;
    this.next = from;
    this.end = end;
    this.held = held;
  }

  @Override
  public int read() throws IOException {
    if (!advance()) {
      return -1;
    }
    return current.getByte(position++) & 0xff;
  }

  @Override
  public int read(final byte[] target, final int offset, final int length) throws IOException {
    Objects.checkFromIndexSize(offset, length, target.length);
    if (length == 0) {
      return 0;
    }
    int done = 0;
    while (done < length && advance()) {
      final int step = Math.min(length - done, current.capacity() - position);
      current.getBytes(position, target, offset + done, step);
      position += step;
      done += step;
    }
    return done == 0 ? -1 : done;
  }

  @Override
  public long skip(final long count) throws IOException {
    long done = 0;
    while (done < count && advance()) {
      final long step = Math.min(count - done, current.capacity() - position);
      position += (int) step;
      done += step;
    }
    return done;
  }

  @Override
  public int available() {
    long left = (long) current.capacity() - position;
    for (int i = next; i < end; i++) {
      left += extents.length(i);
    }
    return (int) Math.min(left, Integer.MAX_VALUE);
  }

  /** Makes sure that the current extent has a byte left; false at the end. */
  private boolean advance() throws IOException {
    if (!held.getAsBoolean()) {
      throw new IOException("the block was read after its fetch window or lease was released");
    }
    while (position == current.capacity()) {
      if (next == end) {
        return false;
      }
      current.wrap(extents.address(next), extents.length(next));
      position = 0;
      next++;
    }
    return true;
  }
}
