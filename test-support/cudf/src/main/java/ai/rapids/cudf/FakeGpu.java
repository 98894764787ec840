package ai.rapids.cudf;

import com.nvidia.spark.rapids.jni.GpuRetryOOM;
import com.nvidia.spark.rapids.spill.SpillFramework$;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.agrona.UnsafeAccess;

/**
 * The memory of the one GPU of this process, and cudf's host memory: who has how much of it, and
 * who may have none. Thread safe.
 */
public final class FakeGpu {
  private static final int ALIGNMENT = 256;
  private static final byte FRESH = (byte) 0xa5;
  private static final byte FREED = (byte) 0xdd;
  private static final TreeMap<Long, Piece> LIVE = new TreeMap<>();
  private static long total = 1L << 30;
  private static long taken;
  private static long others;
  private static int columns;
  private static int allocations;
  private static int failing;
  private static Supplier<? extends RuntimeException> failure;
  private static Error fault;
  private static Runnable closing;

  private record Piece(long base, long bytes, boolean onGpu, Throwable from) {}

  private FakeGpu() {}

  /** Begins a test on a GPU with so many bytes. */
  public static synchronized void begin(final long bytes) {
    total = bytes;
    allocations = 0;
    failure = null;
    fault = null;
  }

  /** How many allocations there were since {@link #begin}. */
  public static synchronized int allocations() {
    return allocations;
  }

  /** Has one allocation fail: the {@code nth} from now, 1 the next one. */
  public static synchronized void failAllocation(
      final int nth, final Supplier<? extends RuntimeException> with) {
    failing = allocations + nth;
    failure = with;
  }

  /** Whether an allocation that was to fail has not been asked for yet. */
  public static synchronized boolean failurePending() {
    return failure != null;
  }

  /** Bytes that neither cudf nor others have. */
  public static synchronized long free() {
    return total - taken - others;
  }

  static synchronized long total() {
    return total;
  }

  /** Bytes of the GPU that cudf has. */
  static synchronized long taken() {
    return taken;
  }

  /** Takes memory of the GPU for somebody else than cudf; false if there is none. */
  public static synchronized boolean reserve(final long bytes) {
    if (free() < bytes) {
      return false;
    }
    others += bytes;
    return true;
  }

  /** Gives it back. */
  public static synchronized void giveBack(final long bytes) {
    others -= bytes;
  }

  /** Memory for somebody who may be told that there is none. */
  static long allocate(final long bytes, final boolean onGpu) {
    count();
    return allocateQuietly(bytes, onGpu);
  }

  /** The same for what tests do by themselves. */
  static long allocateQuietly(final long bytes, final boolean onGpu) {
    while (!take(bytes, onGpu)) {
      GpuQueue.ofThread().run(); // What is freed on this stream can be had on it.
      if (take(bytes, onGpu)) {
        break;
      }
      if (SpillFramework$.MODULE$.stores().deviceStore().spill() == 0) {
        throw new GpuRetryOOM("no " + bytes + " bytes are free");
      }
    }
    final long base = UnsafeAccess.UNSAFE.allocateMemory(bytes + ALIGNMENT);
    final long address = (base + ALIGNMENT - 1) & -ALIGNMENT;
    UnsafeAccess.UNSAFE.setMemory(address, bytes, FRESH);
    synchronized (FakeGpu.class) {
      LIVE.put(address, new Piece(base, bytes, onGpu, new Throwable("allocated here")));
    }
    return address;
  }

  private static void count() {
    final Supplier<? extends RuntimeException> fails;
    synchronized (FakeGpu.class) {
      allocations++;
      fails = allocations == failing ? failure : null;
      failure = fails == null ? failure : null;
    }
    if (fails != null) {
      throw fails.get();
    }
  }

  private static synchronized boolean take(final long bytes, final boolean onGpu) {
    if (onGpu && free() < bytes) {
      return false;
    }
    taken += onGpu ? bytes : 0;
    return true;
  }

  /** Frees memory behind what the calling thread's stream has to do yet. */
  static void free(final long address) {
    GpuQueue.ofThread().addLast(() -> release(address));
  }

  private static synchronized void release(final long address) {
    final Piece piece = LIVE.remove(address);
    require(piece != null, "cudf frees what it has freed");
    taken -= piece.onGpu() ? piece.bytes() : 0;
    UnsafeAccess.UNSAFE.setMemory(address, piece.bytes(), FREED);
    UnsafeAccess.UNSAFE.freeMemory(piece.base());
  }

  /** Whether a range lies within memory that is allocated. */
  public static synchronized boolean isLive(final long address, final long bytes) {
    final Map.Entry<Long, Piece> at = LIVE.floorEntry(address);
    return at != null && address + bytes <= at.getKey() + at.getValue().bytes();
  }

  /** Fails the test, also if nobody sees what is thrown, unless the condition holds. */
  public static void require(final boolean holds, final String what) {
    if (!holds) {
      final AssertionError error = new AssertionError(what);
      synchronized (FakeGpu.class) {
        fault = fault == null ? error : fault;
      }
      throw error;
    }
  }

  /** Checks that cudf may touch a range now, behind what is to be done before. */
  static void touch(final long address, final long bytes) {
    GpuQueue.ofThread().run();
    require(bytes == 0 || isLive(address, bytes), "cudf touches memory that is not allocated");
  }

  static synchronized void columnOpened() {
    columns++;
  }

  /** Has something happen once, before the next column gives its reference back. */
  public static synchronized void beforeColumnCloses(final Runnable action) {
    closing = action;
  }

  static void columnCloses() {
    final Runnable action;
    synchronized (FakeGpu.class) {
      action = closing;
      closing = null;
    }
    if (action != null) {
      action.run();
    }
  }

  static synchronized void columnClosed() {
    columns--;
  }

  /** Fails if anything is open, or if anything failed that nobody saw. */
  public static void checkNothingIsLeft() {
    GpuQueue.runAll();
    final List<Throwable> from = new ArrayList<>();
    synchronized (FakeGpu.class) {
      LIVE.values().forEach(piece -> from.add(piece.from()));
      if (from.isEmpty() && columns == 0 && taken == 0 && others == 0 && fault == null) {
        return;
      }
      final AssertionError leak =
          new AssertionError(
              String.format(
                  java.util.Locale.ROOT,
                  "%d buffers, %d columns and %d bytes of others are left",
                  from.size(),
                  columns,
                  others),
              fault);
      from.stream().limit(3).forEach(leak::addSuppressed);
      LIVE.clear();
      columns = 0;
      taken = 0;
      others = 0;
      throw leak;
    }
  }
}
