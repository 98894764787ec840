package io.zerohop.spark.doctor;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
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
import java.util.stream.Stream;

/**
 * Loads the jar's own classes without Spark on the class path. It uses the jars of an installation
 * of Spark, or else the logging interface that is a jar inside Zerohop's jar. Whatever is in our
 * packages comes from our jar, which is asked first, and from no other.
 */
final class AloneLoader extends URLClassLoader {
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
   * @param sparkHome null, or without jars, if there is no Spark
   */
  static AloneLoader of(final Path sparkHome) throws IOException {
    final List<URL> jars = new ArrayList<>();
    jars.add(AloneLoader.class.getProtectionDomain().getCodeSource().getLocation());
    final Path folder = sparkHome == null ? null : sparkHome.resolve("jars");
    if (folder == null || !Files.isDirectory(folder)) {
      return new AloneLoader(jars.toArray(URL[]::new), logging());
    }
    try (Stream<Path> files = Files.list(folder)) {
      for (final Path jar :
          files.filter(file -> file.toString().endsWith(".jar")).sorted().toList()) {
        jars.add(jar.toUri().toURL());
      }
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
