package io.zerohop.gpu;

import java.lang.reflect.InvocationTargetException;
import java.util.ArrayList;
import java.util.List;

/**
 * GPU memory of an executor that is taken through RAPIDS' own allocator, and that it cannot spill.
 * For tasks of an executor on the first GPU; cudf is on its class path alone, so this goes by
 * reflection. Thread safe; held until {@link #drop}.
 */
final class Ballast {
  private static final String CUDF = "ai.rapids.cudf.";

  /** What is free need not be in one piece. */
  private static final long PIECE = 1L << 30;

  private static final List<AutoCloseable> HELD = new ArrayList<>();

  private Ballast() {}

  /** Takes all that can be had but for so many bytes; returns how many it took. */
  static synchronized long allBut(final long bytes) throws Exception {
    long taken = 0;
    for (long left = room() - bytes; left > 0; left -= PIECE) {
      final long piece = Math.min(left, PIECE);
      HELD.add(allocate(piece));
      taken += piece;
    }
    return taken;
  }

  /** Bytes that RAPIDS' limit leaves, or the driver where there is no limit. */
  static long room() throws Exception {
    if ((boolean) call("Rmm", "isPoolingEnabled")) {
      return (long) call("Rmm", "getPoolSize") - (long) call("Rmm", "getTotalBytesAllocated");
    }
    final Object info = call("Cuda", "memGetInfo");
    return info.getClass().getField("free").getLong(info);
  }

  /** Takes so many bytes for a moment; returns what went wrong, or nothing if nothing did. */
  static String attempt(final long bytes) throws Exception {
    try (AutoCloseable taken = allocate(bytes)) {
      return taken == null ? "nothing" : "";
    } catch (final InvocationTargetException e) {
      return String.valueOf(e.getCause());
    }
  }

  /** Gives everything back. */
  static synchronized void drop() throws Exception {
    for (final AutoCloseable each : HELD) {
      each.close();
    }
    HELD.clear();
  }

  private static AutoCloseable allocate(final long bytes) throws Exception {
    return (AutoCloseable)
        cudf("DeviceMemoryBuffer").getMethod("allocate", long.class).invoke(null, bytes);
  }

  private static Object call(final String type, final String method) throws Exception {
    return cudf(type).getMethod(method).invoke(null);
  }

  private static Class<?> cudf(final String type) throws ClassNotFoundException {
    return Class.forName(CUDF + type, true, Thread.currentThread().getContextClassLoader());
  }
}
