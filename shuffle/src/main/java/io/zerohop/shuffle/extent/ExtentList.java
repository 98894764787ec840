package io.zerohop.shuffle.extent;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.Crc32c;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.StreamPool;
import io.zerohop.device.Undo;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.Tier;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.Arrays;
import java.util.Locale;
import java.util.Objects;
import java.util.function.BooleanSupplier;
import java.util.function.ObjLongConsumer;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/**
 * A growing list of ranges of memory with their checksums, without an object each. Ranges that the
 * host cannot read are marked device-only.
 */
public final class ExtentList {
  /** Of copies on the host. */
  private static final int COPY_ALIGNMENT = 8;

  private long[] addresses = new long[4];
  private int[] lengths = new int[4];
  private int[] checksums = new int[4];
  private boolean[] checked = new boolean[4];
  private boolean[] deviceOnly = new boolean[4];

  /** Where a range lies; absent where nobody has to know. */
  private @Nullable SegmentMemory[] segments = new SegmentMemory[4];

  private int size;

  /** Adds a range whose checksum is not known. */
  public void add(final long address, final int length, final boolean isDeviceOnly) {
    add(address, length, isDeviceOnly, null, false, 0);
  }

  /**
   * Adds a range.
   *
   * @param segment that it lies in, if somebody has to know
   * @param hasChecksum whether the checksum is one
   */
  public void add(
      final long address,
      final int length,
      final boolean isDeviceOnly,
      final @Nullable SegmentMemory segment,
      final boolean hasChecksum,
      final int checksum) {
    if (size == addresses.length) {
      addresses = Arrays.copyOf(addresses, 2 * size);
      lengths = Arrays.copyOf(lengths, 2 * size);
      checksums = Arrays.copyOf(checksums, 2 * size);
      checked = Arrays.copyOf(checked, 2 * size);
      deviceOnly = Arrays.copyOf(deviceOnly, 2 * size);
      segments = Arrays.copyOf(segments, 2 * size);
    }
    addresses[size] = address;
    lengths[size] = length;
    checksums[size] = checksum;
    checked[size] = hasChecksum;
    deviceOnly[size] = isDeviceOnly;
    segments[size] = segment;
    size++;
  }

  /** Forgets all ranges from this index on. */
  public void truncate(final int newSize) {
    size = newSize;
  }

  /**
   * Returns the damage of a range's bytes; absent if they are what was written, as far as its
   * checksum says. A range that has none, or that the host cannot read, is taken for what was
   * written.
   */
  public @Nullable String damage(final int index) {
    if (!checked[index] || deviceOnly[index]) {
      return null;
    }
    return damage(index, Crc32c.of(addresses[index], lengths[index]));
  }

  /**
   * The same for who has computed the CRC32C of a range, which carries a checksum, somewhere else.
   */
  public @Nullable String damage(final int index, final int actual) {
    return actual == checksums[index]
        ? null
        : String.format(Locale.ROOT, "CRC32C is %08x instead of %08x", actual, checksums[index]);
  }

  /**
   * The first damage of any range, with its segment, if {@link #damage(int)} sees one. Only of
   * ranges whose segments were said.
   */
  public @Nullable String firstDamage() {
    for (int i = 0; i < size; i++) {
      final String damage = damage(i);
      if (damage != null) {
        return "in segment " + segment(i).id() + ": " + damage;
      }
    }
    return null;
  }

  /** Returns whether a range carries a checksum. */
  public boolean isChecked(final int index) {
    return checked[index];
  }

  /** Returns whether a range is one that the host cannot read. */
  public boolean isDeviceOnly(final int index) {
    return deviceOnly[index];
  }

  /**
   * The segment that a range lies in.
   *
   * @throws IllegalStateException if that was not said
   */
  public SegmentMemory segment(final int index) {
    final SegmentMemory segment = segments[index];
    if (segment == null) {
      throw new IllegalStateException("nobody said where range " + index + " lies");
    }
    return segment;
  }

  /** Returns whether there is a range that the host cannot read. */
  public boolean hasDeviceOnly() {
    for (int i = 0; i < size; i++) {
      if (deviceOnly[i]) {
        return true;
      }
    }
    return false;
  }

  public int size() {
    return size;
  }

  /** Gives all ranges, in order. */
  public void forEach(final ExtentConsumer consumer) {
    for (int i = 0; i < size; i++) {
      consumer.extent(addresses[i], lengths[i]);
    }
  }

  /** Returns the address of a range. */
  public long address(final int index) {
    return addresses[index];
  }

  /** Bytes of a range. */
  public int length(final int index) {
    return lengths[index];
  }

  /** Returns the bytes that {@link #toHost} takes. */
  public long hostBytes() {
    long bytes = 0;
    for (int i = 0; i < size; i++) {
      bytes += deviceOnly[i] ? aligned(lengths[i]) : 0;
    }
    return bytes;
  }

  private static long aligned(final int length) {
    return (length + COPY_ALIGNMENT - 1L) / COPY_ALIGNMENT * COPY_ALIGNMENT;
  }

  /**
   * Copies the device-only ranges by one gather; from now on this lists the copies. If it fails,
   * the list is as it was.
   *
   * @param onClose runs once, when the copies are freed, or at once if there are none
   * @return the copies, for the caller to close
   */
  public HostCopies toHost(final Devices devices, final Duration limit, final Runnable onClose) {
    try (Undo undo = new Undo(onClose::run)) {
      final HostBuffer buffer =
          HostCopies.gather(
              devices, devices.streams(Tier.DEVICE), hostBytes(), limit, this::addCopies);
      long at = buffer.address();
      for (int i = 0; i < size; i++) {
        if (deviceOnly[i]) {
          addresses[i] = at;
          deviceOnly[i] = false;
          at += aligned(lengths[i]);
        }
      }
      return undo.keep(new HostCopies(buffer, onClose));
    }
  }

  private void addCopies(final CopyBatch batch, final long first) {
    long at = first;
    for (int i = 0; i < size; i++) {
      if (deviceOnly[i]) {
        batch.add(addresses[i], at, lengths[i]);
        at += aligned(lengths[i]);
      }
    }
  }

  /**
   * Gives all ranges, in order, where the host reads them; copies of the device-only ones are there
   * during this call only.
   *
   * @param check runs when these are there, before the first of all is given
   */
  public void forEachOnHost(
      final Devices devices,
      final Duration limit,
      final Runnable check,
      final ExtentConsumer consumer) {
    final HostCopies copies = hasDeviceOnly() ? toHost(devices, limit, () -> {}) : null;
    try (copies) {
      check.run();
      forEach(consumer);
    }
  }

  /** Copies in host memory of ranges on the GPU. Owns that memory; readable until it is closed. */
  public static final class HostCopies implements AutoCloseable {
    private final HostBuffer buffer;
    private final Runnable onClose;
    private boolean closed;

    private HostCopies(final HostBuffer buffer, final Runnable onClose) {
      this.buffer = buffer;
      this.onClose = onClose;
    }

    /**
     * Copies bytes of the GPU to a buffer of their own, and waits until all are there.
     *
     * @param streams of the GPU, one of which makes the copies
     * @param bytes of all copies; may be none
     * @param limit of the wait
     * @param copies adds them to a batch, for a buffer that begins at an address
     * @return the buffer, for the caller to close
     */
    public static HostBuffer gather(
        final Devices devices,
        final StreamPool streams,
        final long bytes,
        final Duration limit,
        final ObjLongConsumer<CopyBatch> copies) {
      final HostBuffer buffer = devices.of(Tier.DEVICE).hostBuffer(Math.max(1, bytes));
      // If it fails nothing is under way any more, or a stuck device keeps the memory.
      try (Undo undo = new Undo(buffer)) {
        streams.run(
            stream -> {
              final CopyBatch batch = stream.newBatch();
              copies.accept(batch, buffer.address());
              stream.submit(batch);
              stream.synchronize(limit);
            });
        return undo.keep(buffer);
      }
    }

    @Override
    public synchronized void close() {
      if (!closed) {
        closed = true;
        buffer.close();
        onClose.run();
      }
    }
  }

  /**
   * Opens some ranges as a stream that reads straight from memory. It does not own the memory, is
   * for one thread, and fails once the memory is no longer held.
   *
   * @param from index of the first range
   * @param end index behind the last range
   * @param held whether the memory may still be read
   */
  public InputStream stream(final int from, final int end, final BooleanSupplier held) {
    return new Stream(from, end, held);
  }

  /** Reads ranges one after the other, with no buffer in between. */
  private final class Stream extends InputStream {
    private final int end;
    private final BooleanSupplier held;
    private final UnsafeBuffer current = new UnsafeBuffer(0, 0);
    private int next;
    private int position;

    Stream(final int from, final int end, final BooleanSupplier held) {
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
        left += length(i);
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
        current.wrap(address(next), length(next));
        position = 0;
        next++;
      }
      return true;
    }
  }

  /** Takes ranges of memory, in order. */
  @FunctionalInterface
  public interface ExtentConsumer {

    /**
     * Takes one range.
     *
     * @param address address of its first byte in this process
     * @param length its length in bytes, positive
     */
    void extent(long address, int length);

    /**
     * Takes a range of any length, in pieces whose lengths an extent can say.
     *
     * @param bytes its length; none are taken of an empty one
     */
    default void extents(final long address, final long bytes) {
      final int most = 1 << 30;
      for (long done = 0; done < bytes; done += most) {
        extent(address + done, (int) Math.min(most, bytes - done));
      }
    }
  }
}
