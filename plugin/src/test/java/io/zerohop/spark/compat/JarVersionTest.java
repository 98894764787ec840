package io.zerohop.spark.compat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.InputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class JarVersionTest {
  private static final String A = "a".repeat(40);
  private static final String B = "b".repeat(40);

  @TempDir Path folder;

  @Test
  void theSameReleaseAndClassesWithoutAJarGoTogether() {
    assertThat(JarVersion.own()).as("not from a jar here").isEmpty();
    assertThatCode(() -> JarVersion.check("1.2.0", "1.2.0", "1")).doesNotThrowAnyException();
    assertThatCode(() -> JarVersion.check("", "1.2.0", "1")).doesNotThrowAnyException();
    assertThatCode(() -> JarVersion.check("1.2.0", "", "1")).doesNotThrowAnyException();
  }

  @Test
  void anotherReleaseIsRefusedByName() {
    assertThatThrownBy(() -> JarVersion.check("1.2.0", "1.3.0", "7"))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("driver has Zerohop 1.2.0 and executor 7 has 1.3.0");
    assertThatThrownBy(() -> JarVersion.check(null, "1.3.0", "7"))
        .hasMessageContaining("of an older release");
  }

  @Test
  void twoBuildsOfOneSnapshotAreRefused() throws Exception {
    final String driver = own("1.3.0-SNAPSHOT", A);
    final String executor = own("1.3.0-SNAPSHOT", B);
    assertThat(driver).isEqualTo("1.3.0-SNAPSHOT+" + A);
    assertThatCode(() -> JarVersion.check(driver, driver, "1")).doesNotThrowAnyException();
    assertThatThrownBy(() -> JarVersion.check(driver, executor, "7"))
        .hasMessageContaining("Zerohop 1.3.0-SNAPSHOT+" + A)
        .hasMessageContaining("executor 7 has 1.3.0-SNAPSHOT+" + B);
    final String built = own("1.3.0-SNAPSHOT", A + "-dirty");
    assertThatThrownBy(() -> JarVersion.check(driver, built, "7")).hasMessageContaining("-dirty");
  }

  @Test
  void withoutACommitTheVersionIsCompared() throws Exception {
    final String driver = own("1.3.0-SNAPSHOT", A);
    final String executor = own("1.3.0-SNAPSHOT", "unknown");
    assertThat(executor).isEqualTo("1.3.0-SNAPSHOT");
    assertThat(own("1.3.0-SNAPSHOT", null)).isEqualTo("1.3.0-SNAPSHOT");
    assertThatCode(() -> JarVersion.check(driver, executor, "1")).doesNotThrowAnyException();
    assertThatThrownBy(() -> JarVersion.check(driver, "1.4.0-SNAPSHOT", "1"))
        .hasMessageContaining("has 1.4.0-SNAPSHOT");
  }

  @Test
  void aReleaseIsItsVersionWhateverItsCommit() throws Exception {
    assertThat(own("1.3.0", A)).isEqualTo("1.3.0");
  }

  /** What this class says when it is loaded from a jar with such a manifest. */
  private String own(final String version, final String commit) throws Exception {
    final Manifest manifest = new Manifest();
    final Attributes attributes = manifest.getMainAttributes();
    attributes.put(Attributes.Name.MANIFEST_VERSION, "1.0");
    attributes.put(Attributes.Name.IMPLEMENTATION_VERSION, version);
    if (commit != null) {
      attributes.putValue("Zerohop-Commit", commit);
    }
    // A blank, as a folder of a user may have.
    final Path jar = Files.createTempFile(folder, "zerohop spark", ".jar");
    final String name = JarVersion.class.getName().replace('.', '/') + ".class";
    try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar), manifest);
        InputStream in = JarVersion.class.getClassLoader().getResourceAsStream(name)) {
      out.putNextEntry(new JarEntry(name));
      in.transferTo(out);
    }
    try (URLClassLoader loader = new OwnJar(jar.toUri().toURL())) {
      return (String) loader.loadClass(JarVersion.class.getName()).getMethod("own").invoke(null);
    }
  }

  /** Loads this class from a jar, and what it needs from where it is. */
  private static final class OwnJar extends URLClassLoader {
    OwnJar(final URL jar) {
      super(new URL[] {jar}, JarVersion.class.getClassLoader());
    }

    @Override
    protected Class<?> loadClass(final String name, final boolean resolve)
        throws ClassNotFoundException {
      return name.equals(JarVersion.class.getName())
          ? findClass(name)
          : super.loadClass(name, resolve);
    }
  }
}
