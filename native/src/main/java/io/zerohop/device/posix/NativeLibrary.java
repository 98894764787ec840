package io.zerohop.device.posix;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/**
 * Loads {@code libzerohop.so} out of the jar, once per class loader. Whoever is the first to reach
 * native code calls {@link #require()}; after that the other classes of this package work.
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

  private static void load() {
    Path copy = null;
    try (InputStream library = NativeLibrary.class.getResourceAsStream(RESOURCE)) {
      if (library == null) {
        throw unavailable(
            "this jar has no native library for this system ("
                + RESOURCE
                + "); build it on one like this, or set spark.zerohop.enabled=false",
            null);
      }
      copy = Files.createTempFile("libzerohop-", ".so");
      Files.copy(library, copy, StandardCopyOption.REPLACE_EXISTING);
      System.load(copy.toString());
    } catch (final IOException | UnsatisfiedLinkError e) {
      throw unavailable(
          "cannot load the native library from "
              + System.getProperty("java.io.tmpdir")
              + " ("
              + e.getMessage()
              + "); point -Djava.io.tmpdir at a folder that is writable and not mounted noexec",
          e);
    } finally {
      unlink(copy);
    }
  }

  /** The mapping outlives the file, so nothing is left behind even by a killed process. */
  private static void unlink(final Path copy) {
    if (copy != null) {
      try {
        Files.deleteIfExists(copy);
      } catch (final IOException e) {
        copy.toFile().deleteOnExit();
      }
    }
  }

  private static ZerohopException unavailable(final String reason, final Throwable cause) {
    return new ZerohopException(Category.FALLBACK, "zerohop: " + reason, cause);
  }
}
