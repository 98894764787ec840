package io.zerohop.shuffle.extent;

import io.zerohop.device.posix.Memory;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;

/**
 * Writes ranges of memory to a file, one behind the other: the kernel takes them from where they
 * lie, without a copy in between. Does not own the file. One of a thread; not thread safe.
 */
public final class ExtentWriter {
  private static final int WRITE_BYTES = 256 << 10;

  /** What is smaller is copied, which costs less than one more range of a write. */
  private static final int SMALL_BYTES = 4 << 10;

  private static final int MAX_RANGES = 256;

  private static final ThreadLocal<ByteBuffer> SMALL =
      ThreadLocal.withInitial(() -> ByteBuffer.allocateDirect(WRITE_BYTES + SMALL_BYTES));

  private final FileChannel file;

  /** What is written next, in order, and after it the range that may still grow. */
  private final ByteBuffer[] ranges = new ByteBuffer[MAX_RANGES];

  private final ByteBuffer small = SMALL.get().clear();
  private int count;
  private long waiting;
  private long start;
  private int length;

  /** Whether the last range is the end of the small ones' buffer. */
  private boolean lastIsSmall;

  /**
   * @param file is written from its position on
   */
  public ExtentWriter(final FileChannel file) {
    this.file = file;
  }

  /**
   * Adds a range, which has to stay as it is until {@link #flush}.
   *
   * @throws UncheckedIOException if the file cannot be written
   */
  public void add(final long address, final int bytes) {
    for (int done = 0; done < bytes; ) {
      final int step = Math.min(WRITE_BYTES, bytes - done);
      if (length == 0 || address + done != start + length) {
        endRange();
        start = address + done;
      }
      length += step;
      waiting += step;
      done += step;
      if (waiting >= WRITE_BYTES) {
        flush();
      }
    }
  }

  /** Lets the range grow no more. */
  private void endRange() {
    if (length == 0) {
      return;
    }
    final ByteBuffer range = Memory.view(start, length);
    final boolean isSmall = length < SMALL_BYTES;
    length = 0;
    if (!isSmall) {
      ranges[count++] = range;
    } else {
      final int at = small.position();
      small.put(range);
      if (lastIsSmall) {
        ranges[count - 1].limit(small.position());
      } else {
        ranges[count++] = small.duplicate().position(at).limit(small.position());
      }
    }
    lastIsSmall = isSmall;
    if (count == MAX_RANGES) {
      write();
    }
  }

  /**
   * Writes what was added.
   *
   * @throws UncheckedIOException if the file cannot be written
   */
  public void flush() {
    endRange();
    write();
  }

  private void write() {
    try {
      for (int done = 0; done < count; ) {
        file.write(ranges, done, count - done);
        while (done < count && !ranges[done].hasRemaining()) {
          done++;
        }
      }
    } catch (final IOException e) {
      throw new UncheckedIOException(e);
    }
    count = 0;
    waiting = 0;
    lastIsSmall = false;
    small.clear();
  }
}
