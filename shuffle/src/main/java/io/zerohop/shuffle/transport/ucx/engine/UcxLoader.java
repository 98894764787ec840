package io.zerohop.shuffle.transport.ucx.engine;

import io.zerohop.device.Message;
import io.zerohop.device.posix.Clock;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Loads the binding of UCX: jucx from the class path, or from a jar that the user names because it
 * has to match the installed libucx. For the latter the classes of jucx are loaded from it, and
 * ours that refer to them once more beside them; everything else is shared. No class of ours comes
 * from such a jar.
 */
public final class UcxLoader {
  private static final String BINDING = "io.zerohop.shuffle.transport.ucx.jucx.";
  private static final String JUCX = "org.openucx.jucx.";

  /**
   * Longer than a peer takes between two pieces of a get over TCP, or the thread would sleep
   * between them; docs/internals/rdma-evidence.md has what it costs beside one that never sleeps.
   */
  private static final Duration SPIN = Duration.ofNanos(500_000);

  private UcxLoader() {}

  /**
   * Starts UCX.
   *
   * @param jar a jucx jar; absent for that on the class path
   * @param devices what it may listen on and connect by; absent for all
   * @param onStart run by the engine's thread first of all
   * @param clock by which its limits are measured
   * @throws UcxException if there is no jucx or no libucx, or they do not fit
   */
  public static UcxEngine start(
      final @Nullable Path jar,
      final @Nullable NetworkDevices devices,
      final Runnable onStart,
      final Clock clock) {
    return start(jar, devices, onStart, SPIN, clock);
  }

  /** The same with another patience of the engine's thread, which benchmarks compare. */
  public static UcxEngine start(
      final @Nullable Path jar,
      final @Nullable NetworkDevices devices,
      final Runnable onStart,
      final Duration spin,
      final Clock clock) {
    return (UcxEngine)
        call(
            jar,
            "start",
            new Class<?>[] {NetworkDevices.class, Runnable.class, Duration.class, Clock.class},
            devices,
            onStart,
            spin,
            clock);
  }

  /**
   * Loads the binding of the class path and libucx, and opens nothing.
   *
   * @throws UcxException if there is no jucx or no libucx
   */
  public static UcxLibrary look() {
    return (UcxLibrary) call(null, "look", new Class<?>[0]);
  }

  private static Object call(
      final @Nullable Path jar,
      final String method,
      final Class<?>[] types,
      final @Nullable Object... arguments) {
    try {
      return loader(jar)
          .loadClass(BINDING + "JucxEngine")
          .getMethod(method, types)
          .invoke(null, arguments);
    } catch (final InvocationTargetException e) {
      if (e.getCause() instanceof UcxException known) {
        throw known;
      }
      final Throwable cause = Objects.requireNonNullElse(e.getCause(), e);
      throw new UcxException(Message.of("UCX cannot be used").because(cause), cause);
    } catch (final ReflectiveOperationException | LinkageError | IOException e) {
      throw new UcxException(Message.of("the binding of UCX cannot be loaded").because(e), e);
    }
  }

  private static ClassLoader loader(final @Nullable Path jar) throws IOException {
    final ClassLoader ours = UcxLoader.class.getClassLoader();
    if (jar == null) {
      return ours;
    }
    if (!Files.isReadable(jar)) {
      throw new IOException("spark.zerohop.ucx.jucx names " + jar + ", which cannot be read");
    }
    return new BindingLoader(jar, ours);
  }

  /**
   * Takes jucx from the jar alone, and our classes that refer to it from where all of ours are. The
   * jar may have classes in our packages, too: nobody asks for them.
   */
  private static final class BindingLoader extends URLClassLoader {
    private static final String OURS = "io.zerohop.";

    BindingLoader(final Path jar, final ClassLoader parent) throws MalformedURLException {
      super(new URL[] {jar.toUri().toURL()}, parent);
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

    @Override
    protected Class<?> findClass(final String name) throws ClassNotFoundException {
      if (name.startsWith(BINDING)) {
        return ours(name);
      }
      if (name.startsWith(OURS)) {
        throw new ClassNotFoundException(name + ", which a jucx jar does not give");
      }
      return super.findClass(name);
    }

    /** The same class as the parent has, once more, beside this jar's jucx. */
    private Class<?> ours(final String name) throws ClassNotFoundException {
      final String file = name.replace('.', '/') + ".class";
      try (InputStream in = getParent().getResourceAsStream(file)) {
        if (in == null) {
          throw new ClassNotFoundException(name);
        }
        final byte[] bytes = in.readAllBytes();
        return defineClass(name, bytes, 0, bytes.length, UcxLoader.class.getProtectionDomain());
      } catch (final IOException e) {
        throw new ClassNotFoundException(name, e);
      }
    }

    /** The native library comes out of the same jar as the classes. */
    @Override
    public URL getResource(final String name) {
      final URL found = name.startsWith("libjucx") ? findResource(name) : null;
      return found != null ? found : super.getResource(name);
    }
  }

  /**
   * The libucx and jucx of this process, as far as they say what they are without a port.
   * Immutable.
   *
   * @param description which they are
   * @param reachesGpuMemory whether requests may go to GPU memory
   */
  public record UcxLibrary(String description, boolean reachesGpuMemory) {}
}
