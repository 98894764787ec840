package io.zerohop.device.posix;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import java.util.Locale;

/**
 * Loads {@code libzerohop.so} out of the jar, once per class loader. Whoever is the first to reach
 * native code calls {@link #require()}; after that the other classes of this package work. They are
 * the system calls that Java lacks, one static method each, to which descriptors and addresses are
 * plain numbers.
 */
public final class NativeLibrary {
  private static final String RESOURCE =
      "/io/zerohop/device/lib/"
          + System.getProperty("os.name", "?").toLowerCase(Locale.ROOT)
          + "-"
          + System.getProperty("os.arch", "?")
          + "/libzerohop.so";

  private static boolean loaded;

  private NativeLibrary() {}

  /**
   * Makes sure that the library is loaded. Thread safe; cheap after the first call.
   *
   * @throws ZerohopException (FALLBACK) when there is no library for this system or it cannot load
   */
  public static synchronized void require() {
    if (!loaded) {
      load();
      loaded = true;
    }
  }

  /** Absolute name of this system's library in the jar, whether or not the jar has it. */
  public static String resource() {
    return RESOURCE;
  }

  /**
   * Version of this process's {@code libucp} as three numbers of a byte each, the major one first:
   * {@code 0x010d01} is 1.13.1.
   *
   * @return 0 if none is loaded
   */
  public static native int libucpVersion();

  private static void load() {
    if (NativeLibrary.class.getResource(RESOURCE) == null) {
      throw new ZerohopException(
          Category.FALLBACK,
          Message.of("this jar has no native library for this system")
              .at(RESOURCE)
              .remedy(
                  "build the jar on such a system, or with a C compiler for it, or set"
                      + " spark.zerohop.enabled=false"));
    }
    JarLibrary.load(RESOURCE);
  }
}
