package io.zerohop.spark.doctor;

import java.io.File;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * Jars that an application's settings put on its driver's class path, such as RAPIDS'. Where no
 * application runs they are looked at as if it did.
 */
final class NamedJars {
  private static final String ALL = "*";

  private NamedJars() {}

  /** What somebody finds who looks for resources by the thread's class loader. */
  static <T> T with(final Settings settings, final Supplier<T> look) throws IOException {
    final Thread thread = Thread.currentThread();
    final ClassLoader before = thread.getContextClassLoader();
    try (URLClassLoader named = new URLClassLoader(jars(settings), before)) {
      thread.setContextClassLoader(named);
      return look.get();
    } finally {
      thread.setContextClassLoader(before);
    }
  }

  private static URL[] jars(final Settings settings) throws IOException {
    final List<URL> jars = new ArrayList<>();
    for (final String entry : split(settings, "spark.driver.extraClassPath", File.pathSeparator)) {
      if (entry.endsWith(ALL)) {
        addAll(jars, Path.of(entry.substring(0, entry.length() - ALL.length())));
      } else {
        jars.add(Path.of(entry).toUri().toURL());
      }
    }
    for (final String entry : split(settings, "spark.jars", ",")) {
      if (!entry.contains("://")) { // What lies elsewhere is not fetched.
        jars.add(Path.of(entry.replaceFirst("^(file|local):", "")).toUri().toURL());
      }
    }
    return jars.toArray(URL[]::new);
  }

  private static List<String> split(
      final Settings settings, final String key, final String separator) {
    final String value = settings.get(key);
    return value == null
        ? List.of()
        : Stream.of(value.split(separator)).map(String::trim).filter(it -> !it.isEmpty()).toList();
  }

  private static void addAll(final List<URL> jars, final Path folder) throws IOException {
    if (!Files.isDirectory(folder)) {
      return;
    }
    try (Stream<Path> files = Files.list(folder)) {
      for (final Path file : files.filter(it -> it.toString().endsWith(".jar")).toList()) {
        jars.add(file.toUri().toURL());
      }
    }
  }
}
