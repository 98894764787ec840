package io.zerohop.shuffle.transport.ucx.engine;

import io.zerohop.device.posix.Clock;
import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;

/**
 * Loads the binding of UCX: the jucx that is on the class path, or one from a jar that the user
 * names, because it has to be of the kind of the libucx that is installed. For the latter the
 * classes of jucx, and ours that refer to them, are loaded once more by a loader that asks the jar
 * first; everything else is shared.
 */
public final class UcxLoader {
  private static final String BINDING = "io.zerohop.shuffle.transport.ucx.jucx.";
  private static final String JUCX = "org.openucx.jucx.";

  /**
   * Longer than a peer takes between two pieces of a get over TCP, or the thread would sleep
   * between them; docs/rdma.md has what it costs beside one that never sleeps.
   */
  private static final Duration SPIN = Duration.ofNanos(500_000);

  private UcxLoader() {}

  /**
   * Starts UCX.
   *
   * @param jar a jucx jar; null for that on the class path
   * @param devices what it may listen on and connect by; null for all
   * @param oneSided as {@link UcxStarter#start} has it
   * @param onStart run by the engine's thread first of all
   * @param clock by which its limits are measured
   * @throws UcxException if there is no jucx or no libucx, or they do not fit
   */
  public static UcxEngine start(
      final Path jar,
      final NetworkDevices devices,
      final boolean oneSided,
      final Runnable onStart,
      final Clock clock) {
    return start(jar, devices, oneSided, onStart, SPIN, clock);
  }

  /** The same with another patience of the engine's thread, which benchmarks compare. */
  public static UcxEngine start(
      final Path jar,
      final NetworkDevices devices,
      final boolean oneSided,
      final Runnable onStart,
      final Duration spin,
      final Clock clock) {
    try {
      return (UcxEngine)
          loader(jar)
              .loadClass(BINDING + "JucxEngine")
              .getMethod(
                  "start",
                  NetworkDevices.class,
                  boolean.class,
                  Runnable.class,
                  Duration.class,
                  Clock.class)
              .invoke(null, devices, oneSided, onStart, spin, clock);
    } catch (final InvocationTargetException e) {
      if (e.getCause() instanceof UcxException known) {
        throw known;
      }
      throw new UcxException("UCX cannot be used: " + e.getCause(), e.getCause());
    } catch (final ReflectiveOperationException | LinkageError | IOException e) {
      throw new UcxException("the binding of UCX cannot be loaded: " + e, e);
    }
  }

  private static ClassLoader loader(final Path jar) throws IOException {
    final ClassLoader ours = UcxLoader.class.getClassLoader();
    if (jar == null) {
      return ours;
    }
    if (!Files.isReadable(jar)) {
      throw new IOException("spark.zerohop.ucx.jucx names " + jar + ", which cannot be read");
    }
    final URL own = UcxLoader.class.getProtectionDomain().getCodeSource().getLocation();
    return new BindingLoader(jar, own, ours);
  }

  /** Asks its own jars first for the classes of the binding, and only for those. */
  private static final class BindingLoader extends URLClassLoader {
    BindingLoader(final Path jar, final URL own, final ClassLoader parent)
        throws MalformedURLException {
      super(new URL[] {jar.toUri().toURL(), own}, parent);
    }

    @Override
    protected Class<?> loadClass(final String name, final boolean resolve)
        throws ClassNotFoundException {
      if (!name.startsWith(JUCX) && !name.startsWith(BINDING)) {
        return super.loadClass(name, resolve);
      }
      synchronized (getClassLoadingLock(name)) {
        final Class<?> known = findLoadedClass(name);
        return known != null ? known : findClass(name);
      }
    }

    /** The native library comes out of the same jar as the classes. */
    @Override
    public URL getResource(final String name) {
      final URL found = name.startsWith("libjucx") ? findResource(name) : null;
      return found != null ? found : super.getResource(name);
    }
  }
}
