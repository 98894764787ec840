package io.zerohop.spark.doctor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.engine.UcxLoader;
import io.zerohop.spark.Main;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Jars that hold somebody else's code: a class of ours and one of jucx, which tell that they ran.
 */
class ForeignCodeTest {
  private static final String OURS = "io.zerohop.shuffle.transport.ucx.jucx.JucxEngine";
  private static final String JUCX = "org.openucx.jucx.NativeLibs";
  private static final int ROOT = 0;
  private static final String TRUSTED = "spark.zerohop.ucx.trustedNetwork";

  @TempDir private Path folder;

  /** A jar with classes of these names, each of which leaves a file of its name when it runs. */
  private Path jar(final String... names) throws IOException {
    final Path jar = folder.resolve("evil.jar");
    try (OutputStream out = Files.newOutputStream(jar);
        JarOutputStream to = new JarOutputStream(out)) {
      for (final String name : names) {
        final String entry = name.replace('.', '/') + ".class";
        to.putNextEntry(new JarEntry(entry));
        to.write(Files.readAllBytes(compiled(name).resolve(entry)));
        to.closeEntry();
      }
    }
    return jar;
  }

  private Path compiled(final String name) throws IOException {
    final String type = name.substring(name.lastIndexOf('.') + 1);
    final Path source = Files.createDirectories(folder.resolve("source")).resolve(type + ".java");
    Files.writeString(
        source,
        "package "
            + name.substring(0, name.lastIndexOf('.'))
            + "; public class "
            + type
            + " { static { try { java.nio.file.Files.createFile(java.nio.file.Path.of("
            + "System.getProperty(\"watched\"), \"ran-"
            + type
            + "\")); } catch (java.io.IOException e) { throw new RuntimeException(e); } } public"
            + " static void load() {} public static Object"
            + " start(io.zerohop.shuffle.transport.ucx.engine.NetworkDevices a, boolean b, Runnable"
            + " c, java.time.Duration d, io.zerohop.device.posix.Clock e) { return null; } }");
    final Path classes = Files.createDirectories(folder.resolve("classes"));
    final int status =
        ToolProvider.getSystemJavaCompiler()
            .run(
                null,
                null,
                null,
                "-cp",
                System.getProperty("java.class.path"),
                "-proc:none",
                "-d",
                classes.toString(),
                source.toString());
    assertThat(status).isZero();
    return classes;
  }

  private boolean ran(final String name) {
    return Files.exists(folder.resolve("ran-" + name.substring(name.lastIndexOf('.') + 1)));
  }

  private String doctor(final String... arguments) throws IOException, InterruptedException {
    final Watched doctor = new Watched(folder);
    final String[] all = new String[arguments.length + 2];
    all[0] = "doctor";
    all[1] = "--no-measure";
    System.arraycopy(arguments, 0, all, 2, arguments.length);
    doctor.run(Map.of(), Main.class.getName(), all);
    return doctor.output();
  }

  @Test
  void codeThatAFileNamesIsNotLoaded() throws Exception {
    final Path jar = jar(OURS, JUCX);
    final Path file = folder.resolve("app.conf");
    Files.writeString(file, "spark.zerohop.ucx.jucx " + jar + "\n" + TRUSTED + " true\n");
    final String output = doctor("--properties-file", file.toString());
    assertThat(ran(OURS) || ran(JUCX)).as(output).isFalse();
    assertThat(output).contains("--conf spark.zerohop.ucx.jucx=" + jar);
  }

  @Test
  void withoutATrustedNetworkNoOtherJucxIsLoaded() throws Exception {
    final Path jar = jar(OURS, JUCX);
    final String output = doctor("--conf", "spark.zerohop.ucx.jucx=" + jar);
    assertThat(ran(OURS) || ran(JUCX)).as(output).isFalse();
  }

  @Test
  void aJarThatIsNamedGivesNoClassOfOurs() throws Exception {
    System.setProperty("watched", folder.toString());
    try {
      final Path jar = jar(OURS, JUCX);
      assertThatThrownBy(() -> UcxLoader.start(jar, null, () -> {}, Clock.system()))
          .isInstanceOf(UcxException.class);
      assertThat(ran(OURS)).isFalse();
    } finally {
      System.clearProperty("watched");
    }
  }

  @Test
  void othersCannotChangeWhatRootLoads() throws Exception {
    final Path safe = Files.createDirectories(folder.resolve("safe"));
    final Path jar = Files.writeString(safe.resolve("a.jar"), "");
    final int self = (int) Files.getAttribute(jar, "unix:uid");
    assertThat(new ForeignCode(self).changeable(jar)).isNull();
    mode(jar, "rw-rw-r--");
    assertThat(new ForeignCode(self).changeable(jar)).isEqualTo(jar + " can be written by others");
    mode(jar, "rw-r--r--");
    mode(safe, "rwxr-xrwx");
    assertThat(new ForeignCode(self).changeable(jar)).isEqualTo(safe + " can be written by others");
    mode(safe, "rwxr-xr-x");
    final Path way = Files.createDirectories(folder.resolve("way"));
    final Path link = Files.createSymbolicLink(way.resolve("b.jar"), Path.of("../safe/a.jar"));
    assertThat(new ForeignCode(self).changeable(link)).isNull();
    mode(way, "rwxrwxr-x");
    assertThat(new ForeignCode(self).changeable(link)).isEqualTo(way + " can be written by others");
    mode(way, "rwxr-xr-x");
    mode(jar, "rw-rw-rw-");
    assertThat(new ForeignCode(self).changeable(link)).startsWith(jar.toString());
    Files.createSymbolicLink(way.resolve("c.jar"), way.resolve("c.jar"));
    assertThat(new ForeignCode(self).changeable(way.resolve("c.jar"))).contains("too many");
  }

  @Test
  void rootLoadsNothingOfOthersAndOthersWhatTheyLike() throws Exception {
    final Path home = Files.createDirectories(folder.resolve("spark/jars")).getParent();
    final Path jar = Files.writeString(home.resolve("jars/spark-core.jar"), "");
    mode(jar, "rw-rw-rw-");
    assertThat(new ForeignCode(ROOT).refusal(jar)).contains("runs as root");
    assertThat(new ForeignCode(ROOT).refusalOfSpark(home)).contains("runs as root");
    assertThat(new ForeignCode(1000).refusal(jar)).isNull();
    assertThat(new ForeignCode(1000).refusalOfSpark(home)).isNull();
    final int self = (int) Files.getAttribute(jar, "unix:uid");
    mode(jar, "rw-r--r--");
    if (self == ROOT) {
      assertThat(new ForeignCode(ROOT).refusalOfSpark(home)).isNull();
      Files.setAttribute(jar, "unix:uid", 61_531);
    }
    assertThat(new ForeignCode(ROOT).refusal(jar)).contains("belongs to user");
  }

  private static void mode(final Path path, final String mode) throws IOException {
    Files.setPosixFilePermissions(path, PosixFilePermissions.fromString(mode));
  }
}
