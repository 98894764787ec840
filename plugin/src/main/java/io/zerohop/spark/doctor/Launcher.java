package io.zerohop.spark.doctor;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.jar.JarEntry;
import java.util.jar.JarInputStream;
import org.jspecify.annotations.Nullable;

/**
 * Starts the jar's commands. Zerohop's classes log by an interface that Spark brings. Where Spark
 * is not on the class path they are loaded once more, with Spark's jars beside them if an
 * installation is named, and else with the interface alone, which then logs nothing.
 */
public final class Launcher {
  static final String SPARK_HOME_OPTION = "--spark-home";

  private static final long EXIT_MILLIS = 5_000;
  private static final String COMMANDS = "io.zerohop.spark.Commands";
  private static final String LOGGING = "org.slf4j.LoggerFactory";

  private Launcher() {}

  /** Runs a command and ends the process with its status, whatever threads are left. */
  public static void main(final String[] arguments) throws Throwable {
    final int status = run(arguments);
    // A library's exit hook may wait for what a check could not end.
    final Thread last = new Thread(() -> halt(status), "doctor-exit");
    last.setDaemon(true);
    last.start();
    System.exit(status);
  }

  private static void halt(final int status) {
    try {
      Thread.sleep(EXIT_MILLIS);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    Runtime.getRuntime().halt(status);
  }

  private static int run(final String[] arguments) throws Throwable {
    if (isThere(LOGGING)) {
      return run(Launcher.class.getClassLoader(), arguments);
    }
    try (AloneLoader loader = AloneLoader.of(sparkHome(arguments))) {
      Thread.currentThread().setContextClassLoader(loader);
      return run(loader, arguments);
    }
  }

  private static int run(final ClassLoader loader, final String[] arguments) throws Throwable {
    final Method run = loader.loadClass(COMMANDS).getDeclaredMethod("run", String[].class);
    run.setAccessible(true);
    try {
      return (int) run.invoke(null, (Object) arguments);
    } catch (final InvocationTargetException e) {
      throw e.getCause();
    }
  }

  /** Returns whether a class is on the class path, which is not initialised. */
  static boolean isThere(final String name) {
    try {
      Class.forName(name, false, Launcher.class.getClassLoader());
      return true;
    } catch (final ClassNotFoundException e) {
      return false;
    }
  }

  /**
   * Returns the installation that the command line names, before that can be parsed; null if it
   * names none, or one that may not be loaded. Code that an environment variable names is not
   * loaded.
   */
  private static @Nullable Path sparkHome(final String[] arguments) {
    String home = "";
    for (int i = 0; i < arguments.length; i++) {
      if (arguments[i].startsWith(SPARK_HOME_OPTION + "=")) {
        home = arguments[i].substring(SPARK_HOME_OPTION.length() + 1);
      } else if (arguments[i].equals(SPARK_HOME_OPTION) && i + 1 < arguments.length) {
        home = arguments[i + 1];
      }
    }
    final boolean refused =
        !home.isEmpty() && new ForeignCode().refusalOfSpark(Path.of(home)) != null;
    return home.isEmpty() || refused ? null : Path.of(home); // DoctorCommand says why.
  }

  /**
   * A loader of the jar's own classes where no Spark is on the class path. It loads them with the
   * jars of an installation of Spark, or else with the logging interface that lies in our jar as a
   * jar of its own. Whatever is in our packages comes from our jar, which is asked first, and from
   * no other.
   */
  private static final class AloneLoader extends URLClassLoader {
    static final String LOGGING_JAR = "/META-INF/alone/slf4j-api.jar";

    static {
      registerAsParallelCapable();
    }

    private static final String OUR_PACKAGES = "io.zerohop.";
    private static final String OUR_FOLDER = OUR_PACKAGES.replace('.', '/');

    /** Classes of the jar in the jar, by name. */
    private final Map<String, byte[]> inner;

    /** Our jar alone. */
    private final URLClassLoader own;

    private AloneLoader(final URL[] jars, final Map<String, byte[]> inner) {
      super(jars, ClassLoader.getPlatformClassLoader());
      this.inner = Map.copyOf(inner);
      this.own = new URLClassLoader(new URL[] {jars[0]}, null);
    }

    /**
     * A loader, for the caller to close.
     *
     * @param sparkHome absent, or without jars, if there is no Spark
     */
    static AloneLoader of(final @Nullable Path sparkHome) throws IOException {
      final List<URL> jars = new ArrayList<>();
      jars.add(AloneLoader.class.getProtectionDomain().getCodeSource().getLocation());
      final Path folder = sparkHome == null ? null : sparkHome.resolve("jars");
      if (folder == null || !Files.isDirectory(folder)) {
        return new AloneLoader(jars.toArray(URL[]::new), logging());
      }
      for (final Path jar : ForeignCode.jars(folder)) {
        jars.add(jar.toUri().toURL());
      }
      return new AloneLoader(jars.toArray(URL[]::new), Map.of());
    }

    private static Map<String, byte[]> logging() throws IOException {
      System.setProperty("slf4j.internal.verbosity", "ERROR"); // That nobody listens is intended.
      final Map<String, byte[]> classes = new HashMap<>();
      try (InputStream in = AloneLoader.class.getResourceAsStream(LOGGING_JAR)) {
        if (in == null) {
          throw new IOException("this jar has no " + LOGGING_JAR);
        }
        final JarInputStream jar = new JarInputStream(new ByteArrayInputStream(in.readAllBytes()));
        for (JarEntry entry = jar.getNextJarEntry(); entry != null; entry = jar.getNextJarEntry()) {
          final String name = entry.getName();
          if (name.startsWith("org/slf4j/") && name.endsWith(".class")) {
            classes.put(
                name.substring(0, name.length() - ".class".length()).replace('/', '.'),
                jar.readAllBytes());
          }
        }
      }
      return classes;
    }

    @Override
    protected Class<?> findClass(final String name) throws ClassNotFoundException {
      if (name.startsWith(OUR_PACKAGES)
          && own.findResource(name.replace('.', '/') + ".class") == null) {
        throw new ClassNotFoundException(name + ", which is taken from our own jar only");
      }
      final byte[] bytes = inner.get(name);
      return bytes == null ? super.findClass(name) : defineClass(name, bytes, 0, bytes.length);
    }

    /** Native libraries and kernels are ours, too. */
    @Override
    public URL findResource(final String name) {
      return name.startsWith(OUR_FOLDER) ? own.findResource(name) : super.findResource(name);
    }

    @Override
    public Enumeration<URL> findResources(final String name) throws IOException {
      return name.startsWith(OUR_FOLDER) ? own.findResources(name) : super.findResources(name);
    }

    @Override
    public void close() throws IOException {
      try (own) {
        super.close();
      }
    }
  }
}
