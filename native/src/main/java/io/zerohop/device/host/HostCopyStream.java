package io.zerohop.device.host;

import io.zerohop.device.BlockChecksums;
import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.Crc32c;
import io.zerohop.device.RowHashBatch;
import io.zerohop.device.RowHashBatch.HashMix;
import io.zerohop.device.Signal;
import io.zerohop.device.SpliceBatch;
import io.zerohop.device.WaitException;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Memory;
import io.zerohop.device.posix.Threads;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.IntToLongFunction;
import org.agrona.BufferUtil;
import org.agrona.UnsafeAccess;
import org.jspecify.annotations.Nullable;

/**
 * A queue of operations with one worker thread. While the queue is empty and nothing has to wait,
 * the submitting thread makes the copies itself: most callers submit and synchronize at once, and a
 * hand-over to another thread would cost more than most copies do. The worker starts with the first
 * operation that must wait.
 *
 * <p>The lock guards the queue and the states; operations run outside it, one at a time.
 */
final class HostCopyStream implements CopyStream {
  private final Consumer<Object> onClose;
  private final String name;
  private final ReentrantLock lock = new ReentrantLock();
  private final Condition changed = lock.newCondition();
  private final ArrayDeque<Runnable> queue = new ArrayDeque<>();
  private @Nullable Thread worker;
  private boolean running;
  private @Nullable RuntimeException failure;
  private volatile boolean closed;

  /** Of the last blocks that were summed up. */
  private @Nullable ByteBuffer sums;

  HostCopyStream(final Consumer<Object> onClose, final String name) {
    this.onClose = onClose;
    this.name = name;
  }

  @Override
  public CopyBatch newBatch() {
    return new HostCopyBatch();
  }

  @Override
  public void submit(final CopyBatch batch) {
    if (!(batch instanceof HostCopyBatch ours)) {
      throw new IllegalArgumentException("not a batch of the host device: " + batch);
    }
    enqueue(ours::run, true);
  }

  @Override
  public void submit(final SpliceBatch batch) {
    final SpliceBatch copy = batch.copy();
    enqueue(() -> HostSplice.run(copy), true);
  }

  @Override
  public void submit(final RowHashBatch batch, final long resultAddress) {
    final RowHashBatch copy = batch.copy();
    enqueue(() -> HostRowHash.run(copy, resultAddress), true);
  }

  @Override
  public BlockChecksums checksums(
      final long blocks, final long offsets, final int count, final long bytes) {
    final IntToLongFunction starts =
        i -> UnsafeAccess.UNSAFE.getLong(offsets + (long) Long.BYTES * i);
    return checksums(count, bytes, i -> blocks + starts.applyAsLong(i), starts);
  }

  @Override
  public BlockChecksums checksums(final long[] addresses, final long[] starts) {
    final int count = addresses.length;
    return checksums(count, starts[count], i -> addresses[i], i -> starts[i]);
  }

  /** Sums up whole blocks, with nothing left for their later pieces. */
  private BlockChecksums checksums(
      final int count,
      final long bytes,
      final IntToLongFunction addresses,
      final IntToLongFunction starts) {
    final int needed = Math.toIntExact(BlockChecksums.resultBytes(count, bytes));
    if (sums == null || sums.capacity() < needed) {
      sums = ByteBuffer.allocateDirect(needed);
    }
    final ByteBuffer into = sums; // Which stays as long as the operation.
    enqueue(
        () -> {
          final long results = BufferUtil.address(into);
          UnsafeAccess.UNSAFE.setMemory(results, needed, (byte) 0);
          for (int i = 0; i < count; i++) {
            final long length = starts.applyAsLong(i + 1) - starts.applyAsLong(i);
            UnsafeAccess.UNSAFE.putInt(
                results + (long) Integer.BYTES * i,
                Crc32c.of(addresses.applyAsLong(i), Math.toIntExact(length)));
          }
        },
        true);
    return new BlockChecksums(BufferUtil.address(into), count);
  }

  @Override
  public void await(final Signal signal, final int epoch, final Duration limit) {
    // A signal that was already raised needs no wait, and so no worker.
    enqueue(() -> signal.await(epoch, limit, () -> closed), signal.reached(epoch));
  }

  @Override
  public void raise(final Signal signal, final int epoch) {
    enqueue(() -> signal.raise(epoch), true);
  }

  private void enqueue(final Runnable operation, final boolean prompt) {
    lock.lock();
    try {
      if (closed) {
        throw new IllegalStateException("copy stream " + name + " is closed");
      }
      if (failure != null) {
        return; // Everything behind a failure is skipped until synchronize reports it.
      }
      if (!prompt || running || !queue.isEmpty()) {
        startWorker(); // First: without a worker it would wait in the queue for ever.
        queue.add(operation);
        changed.signalAll();
        return;
      }
      running = true;
    } finally {
      lock.unlock();
    }
    run(operation);
  }

  private void startWorker() {
    if (worker == null) {
      final Thread started = Threads.daemon(this::work, "zerohop-copy-" + name);
      started.start();
      worker = started;
    }
  }

  private void work() {
    while (true) {
      final Runnable operation;
      lock.lock();
      try {
        while (!closed && (running || queue.isEmpty())) {
          changed.awaitUninterruptibly();
        }
        if (closed) {
          return;
        }
        operation = queue.poll();
        running = true;
      } finally {
        lock.unlock();
      }
      run(operation);
    }
  }

  /** Runs one operation; the caller has set {@code running}. */
  private void run(final Runnable operation) {
    RuntimeException failed = new IllegalStateException("an error ended the operation");
    try {
      operation.run();
      failed = null;
    } catch (final RuntimeException e) {
      failed = e;
    } finally {
      ended(failed); // Of an error, too: whoever closes the stream waits for this.
    }
  }

  private void ended(final @Nullable RuntimeException failed) {
    lock.lock();
    try {
      running = false;
      if (failed != null) {
        failure = failed;
        queue.clear();
      }
      changed.signalAll();
    } finally {
      lock.unlock();
    }
  }

  @Override
  public void synchronize(final Duration limit) {
    final Deadline deadline = Deadline.in(limit);
    lock.lock();
    try {
      while (failure == null && (running || !queue.isEmpty())) {
        if (closed) {
          throw new IllegalStateException("copy stream " + name + " is closed");
        }
        awaitChange(deadline, limit);
      }
      if (failure != null) {
        final RuntimeException reported = failure;
        failure = null;
        throw report(reported);
      }
    } finally {
      lock.unlock();
    }
  }

  @SuppressWarnings("WaitNotInLoop") // Its callers loop.
  private void awaitChange(final Deadline deadline, final Duration limit) {
    final long nanos = deadline.remainingNanos();
    if (nanos == 0) {
      throw new WaitException(
          WaitException.Reason.TIMEOUT,
          "host: copy stream " + name + " was not done within " + limit);
    }
    try {
      changed.await(nanos, TimeUnit.NANOSECONDS);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new WaitException(
          WaitException.Reason.CANCELLED,
          "host: the wait for copy stream " + name + " was interrupted");
    }
  }

  private ZerohopException report(final RuntimeException cause) {
    final String message = "host: copy stream " + name + " failed: " + cause.getMessage();
    if (cause instanceof WaitException wait) {
      return new WaitException(wait.reason(), message, cause);
    }
    return new ZerohopException(ZerohopException.Category.RETRY, message, cause);
  }

  /** Waits for the operation in progress only, which a closed stream's wait ends within 10 ms. */
  @Override
  public void close() {
    final boolean first;
    lock.lock();
    try {
      first = !closed;
      closed = true;
      queue.clear();
      changed.signalAll();
      while (running) {
        changed.awaitUninterruptibly();
      }
    } finally {
      lock.unlock();
    }
    if (first) {
      onClose.accept(this);
    }
  }

  @Override
  public String toString() {
    return "copy stream " + name;
  }

  /** Puts columns together in shared host memory, on the calling thread. */
  private static final class HostSplice {
    private static final int WORD_BITS = Integer.SIZE;

    static void run(final SpliceBatch lists) {
      lists.forEachOffsets(HostSplice::addOffsets);
      for (int column = 0; column < lists.bitColumns(); column++) {
        putBits(lists, column);
      }
    }

    private static void addOffsets(
        final long source, final long destination, final int count, final int delta) {
      for (long i = 0; i < count; i++) {
        UnsafeAccess.UNSAFE.putInt(
            destination + 4 * i, UnsafeAccess.UNSAFE.getInt(source + 4 * i) + delta);
      }
    }

    private static void putBits(final SpliceBatch lists, final int column) {
      final int bits = lists.bits(column);
      int run = lists.firstRun(column);
      int word = 0;
      for (int bit = 0; bit < bits; bit++) {
        while (run + 1 < lists.endOfRuns(column) && lists.runStart(run + 1) <= bit) {
          run++;
        }
        final long source = lists.runSource(run);
        word |= source == 0 || isSet(source, bit - lists.runStart(run)) ? 1 << bit : 0;
        if (bit % WORD_BITS == WORD_BITS - 1 || bit == bits - 1) {
          UnsafeAccess.UNSAFE.putInt(lists.destination(column) + 4L * (bit / WORD_BITS), word);
          word = 0;
        }
      }
    }

    static boolean isSet(final long source, final int bit) {
      return (UnsafeAccess.UNSAFE.getInt(source + 4L * (bit / WORD_BITS)) >>> bit & 1) != 0;
    }
  }

  /** Hashes rows of columns in shared host memory, on the calling thread. */
  private static final class HostRowHash {
    private final RowHashBatch lists;
    private final int first;

    private HostRowHash(final RowHashBatch lists, final int table) {
      this.lists = lists;
      this.first = lists.firstColumn(table);
    }

    static void run(final RowHashBatch lists, final long resultAddress) {
      for (int table = 0; table < lists.tables(); table++) {
        final HostRowHash hash = new HostRowHash(lists, table);
        int row = lists.firstRow(table);
        final int behind = row + lists.rows(table);
        for (int i = lists.firstResult(table); i < lists.endOfResults(table); i++) {
          final int end = (int) Math.min(behind, (long) row + lists.chunkRows(table));
          long sum = 0;
          for (; row < end; row++) {
            sum += hash.sequence(RowHashBatch.ROW, hash.first, lists.top(table), row);
          }
          UnsafeAccess.UNSAFE.putLong(resultAddress + (long) Long.BYTES * i, sum);
        }
      }
    }

    /** Columns beside each other: those of a row, or the fields of a struct. */
    private long sequence(final long begin, final int from, final int count, final int row) {
      long hash = begin;
      int column = from;
      for (int i = 0; i < count; i++) {
        hash = HashMix.combine(hash, value(column, row));
        column = first + lists.end(column);
      }
      return hash;
    }

    private long value(final int column, final int row) {
      if (isNull(lists.mask(column), row)) {
        return RowHashBatch.NULL;
      }
      return switch (lists.kind(column)) {
        case RowHashBatch.KIND_FIXED -> fixed(lists.detail(column), lists.data(column), row);
        case RowHashBatch.KIND_STRING -> string(column, row);
        case RowHashBatch.KIND_LIST -> list(column, row);
        default -> sequence(RowHashBatch.STRUCT, column + 1, lists.detail(column), row);
      };
    }

    private static boolean isNull(final long mask, final int row) {
      return mask != 0 && !HostSplice.isSet(mask, row);
    }

    private static long fixed(final int width, final long data, final int row) {
      final long at = data + (long) width * row;
      final long begin = RowHashBatch.FIXED + width;
      if (width > Long.BYTES) {
        return HashMix.combine(
            HashMix.combine(begin, UnsafeAccess.UNSAFE.getLong(at)),
            UnsafeAccess.UNSAFE.getLong(at + Long.BYTES));
      }
      return HashMix.combine(begin, bytes(at, width));
    }

    /** At most eight bytes as a little-endian number. */
    private static long bytes(final long at, final int count) {
      long value = 0;
      for (int i = 0; i < count; i++) {
        value |= (UnsafeAccess.UNSAFE.getByte(at + i) & 0xffL) << Byte.SIZE * i;
      }
      return value;
    }

    private int offset(final int column, final int row) {
      return UnsafeAccess.UNSAFE.getInt(lists.offsets(column) + 4L * row);
    }

    private long string(final int column, final int row) {
      final int begin = offset(column, row);
      final int end = offset(column, row + 1);
      long hash = HashMix.combine(RowHashBatch.STRING, end - begin);
      for (long at = begin; at < end; at += Long.BYTES) {
        final int count = (int) Math.min(Long.BYTES, end - at);
        hash = HashMix.combine(hash, bytes(lists.data(column) + at, count));
      }
      return hash;
    }

    private long list(final int column, final int row) {
      final int begin = offset(column, row);
      final int end = offset(column, row + 1);
      long hash = HashMix.combine(RowHashBatch.LIST, end - begin);
      for (int item = begin; item < end; item++) {
        hash = HashMix.combine(hash, value(column + 1, item));
      }
      return hash;
    }
  }

  /**
   * Copies as an off-heap list, so that a whole batch is one native call.
   *
   * <p>An entry is three 64-bit words in native order, as {@code struct zh_copy} in memory.c:
   *
   * <pre>
   *  0        8             16       24
   *  | source | destination | length |
   * </pre>
   */
  private static final class HostCopyBatch implements CopyBatch {
    private static final int ENTRY_BYTES = 24;
    private static final int FIRST_CAPACITY = 64;
    private static final int MAX_ENTRIES = Integer.MAX_VALUE / ENTRY_BYTES;

    private ByteBuffer entries = newList(FIRST_CAPACITY);
    private int size;
    private long bytes;

    @Override
    public void add(final long sourceAddress, final long destinationAddress, final long length) {
      CopyBatch.check(sourceAddress, destinationAddress, length);
      if (length == 0) {
        return;
      }
      if ((size + 1) * ENTRY_BYTES > entries.capacity()) {
        grow();
      }
      final int at = size * ENTRY_BYTES;
      entries.putLong(at, sourceAddress);
      entries.putLong(at + 8, destinationAddress);
      entries.putLong(at + 16, length);
      size++;
      bytes += length;
    }

    private void grow() {
      if (size == MAX_ENTRIES) {
        throw new IllegalStateException("a batch holds at most " + MAX_ENTRIES + " copies");
      }
      final ByteBuffer larger = newList((int) Math.min(MAX_ENTRIES, size * 2L));
      larger.put(0, entries, 0, size * ENTRY_BYTES);
      entries = larger;
    }

    private static ByteBuffer newList(final int capacity) {
      return ByteBuffer.allocateDirect(capacity * ENTRY_BYTES).order(ByteOrder.nativeOrder());
    }

    @Override
    public int size() {
      return size;
    }

    @Override
    public long bytes() {
      return bytes;
    }

    @Override
    public void clear() {
      size = 0;
      bytes = 0;
    }

    /** Makes the copies, in order, on the calling thread. */
    void run() {
      if (size > 0) {
        final ByteBuffer list = entries;
        try {
          Memory.copy(BufferUtil.address(list), size);
        } finally {
          Reference.reachabilityFence(list); // Native code has its address, which keeps nothing.
        }
      }
    }
  }
}
