package io.zerohop.spark.compat;

import io.zerohop.device.Message;
import io.zerohop.spark.log.UnusableException;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.URLConnection;
import java.security.CodeSource;
import java.util.jar.Attributes;
import java.util.jar.Manifest;
import org.jspecify.annotations.Nullable;

/**
 * The release of Zerohop's jar in a process, from its manifest. What driver and executors tell each
 * other, and the memory that they share, has no form that two releases agree on. Builds between two
 * releases share a version, so theirs includes the commit: {@code 0.3.0-SNAPSHOT+COMMIT}.
 */
public final class JarVersion {
  /** Of classes that do not come from a jar of ours. */
  private static final String UNKNOWN = "";

  private static final String SNAPSHOT = "-SNAPSHOT";
  private static final char COMMIT = '+';

  /** What the build writes where git does not know the commit. */
  private static final String NO_COMMIT = "unknown";

  private static final String OWN = read();

  private JarVersion() {}

  /** This process's; empty if it is not known. */
  public static String own() {
    return OWN;
  }

  /**
   * Refuses to work with a driver of another release. Two builds of one snapshot differ by their
   * commit, where both know theirs.
   *
   * @param driver the driver's; absent of an older release, whose handle has none
   * @param executor this process's
   * @param executorId names this process in the message
   * @throws IllegalStateException if they differ; says what to do
   */
  public static void check(
      final @Nullable String driver, final String executor, final String executorId) {
    if (UNKNOWN.equals(driver) || UNKNOWN.equals(executor) || alike(driver, executor)) {
      return;
    }
    throw new UnusableException(
        Message.of(
                "the driver has Zerohop "
                    + (driver == null ? "of an older release" : driver)
                    + " and executor "
                    + executorId
                    + " has "
                    + executor)
            .remedy(
                "give all of them the same zerohop-spark jar: in $SPARK_HOME/jars of each node, or"
                    + " by spark.jars or spark.driver.extraClassPath and"
                    + " spark.executor.extraClassPath"));
  }

  private static boolean alike(final @Nullable String driver, final String executor) {
    if (driver == null) {
      return false;
    }
    final boolean commits = driver.indexOf(COMMIT) >= 0 && executor.indexOf(COMMIT) >= 0;
    return commits ? driver.equals(executor) : version(driver).equals(version(executor));
  }

  private static String version(final String release) {
    final int commit = release.indexOf(COMMIT);
    return commit < 0 ? release : release.substring(0, commit);
  }

  private static String read() {
    final String version = JarVersion.class.getPackage().getImplementationVersion();
    if (version == null) {
      return UNKNOWN;
    }
    final String commit = version.endsWith(SNAPSHOT) ? commit() : null;
    return commit == null || commit.equals(NO_COMMIT) ? version : version + COMMIT + commit;
  }

  /** Of this class's jar; null if it does not tell. */
  private static @Nullable String commit() {
    final CodeSource source = JarVersion.class.getProtectionDomain().getCodeSource();
    if (source == null || source.getLocation() == null) {
      return null;
    }
    try {
      final URLConnection manifest =
          URI.create("jar:" + source.getLocation() + "!/META-INF/MANIFEST.MF")
              .toURL()
              .openConnection();
      // Closed with the stream: a cached file would stay open.
      manifest.setUseCaches(false);
      try (InputStream in = manifest.getInputStream()) {
        final Attributes attributes = new Manifest(in).getMainAttributes();
        return attributes.getValue("Zerohop-Commit");
      }
    } catch (final IOException | IllegalArgumentException e) {
      // No jar that can be read again: the version alone is compared.
      return null;
    }
  }
}
