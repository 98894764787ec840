package jcuda;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.JarLibrary;
import java.util.HashSet;
import java.util.Set;

/**
 * Loads the native libraries of JCuda's classes, in the place of JCuda's class of this name. That
 * one loads whatever lies at a fixed path of the temporary folder, which any local user may write,
 * and which another process may be writing. JCuda's classes find this one by its name and the
 * signatures of the methods; it comes first on class paths and alone into the plugin's jar.
 *
 * <p>Thread safe. Nothing is remembered of a load that failed.
 */
public final class LibUtils {
  private static final Set<String> LOADED = new HashSet<>();

  private LibUtils() {}

  /** The systems that JCuda's other classes tell apart. */
  public enum OSType {
    APPLE,
    LINUX
  }

  /** Zerohop runs on Linux alone. */
  public static OSType calculateOS() {
    return OSType.LINUX;
  }

  /**
   * Loads the library of {@link jcuda.driver.JCudaDriver}, once. Called ahead of that class: the
   * JVM would keep a failure in its initialiser for good. JCuda's own class has no such method, so
   * that a caller also learns, before anything is loaded, that it is not in our place.
   *
   * @throws UnsatisfiedLinkError if it cannot load
   */
  public static void loadDriver() {
    loadLibrary(driverLibrary());
  }

  /** Absolute name of that library in the jar. */
  public static String driverResource() {
    return resource(driverLibrary());
  }

  private static String driverLibrary() {
    return createPlatformLibraryName("JCudaDriver-" + JCudaVersion.get());
  }

  private static String resource(final String library) {
    return "/lib/" + System.mapLibraryName(library);
  }

  /** What JCuda's builds for a system call a library. */
  public static String createPlatformLibraryName(final String baseName) {
    final String architecture = System.getProperty("os.arch", "?");
    return baseName + "-linux-" + (architecture.equals("amd64") ? "x86_64" : architecture);
  }

  /**
   * Loads a library out of the jar, once.
   *
   * @param name as {@link #createPlatformLibraryName} makes it
   * @param dependencies unused; the libraries of JCuda's core have none
   * @throws UnsatisfiedLinkError if it cannot load
   */
  public static synchronized void loadLibrary(final String name, final String... dependencies) {
    if (LOADED.contains(name)) {
      return;
    }
    try {
      JarLibrary.load(resource(name));
    } catch (final ZerohopException e) {
      final Error failure = new UnsatisfiedLinkError(e.getMessage());
      failure.initCause(e);
      throw failure;
    }
    LOADED.add(name);
  }
}
