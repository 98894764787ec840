package io.zerohop.device.posix;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.JarLibrary.GlibcVersion;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.opentest4j.TestAbortedException;

final class JarLibraryTest {
  @TempDir Path scratch;

  @Test
  void aLibraryThatTheJarLacksIsNamed() {
    assertThatThrownBy(() -> JarLibrary.load("/lib/libnone.so"))
        .isInstanceOfSatisfying(
            ZerohopException.class,
            e -> assertThat(e.category()).isEqualTo(ZerohopException.Category.FALLBACK))
        .hasMessageContaining("the jar lacks a native library (/lib/libnone.so)");
  }

  @Test
  void aLibraryThatWantsANewerGlibcSaysWhichAndNotNoexec() throws Exception {
    final Path library = wanting("GLIBC_9.87");
    try (InputStream bytes = Files.newInputStream(library)) {
      assertThatThrownBy(() -> JarLibrary.load(bytes, "/lib/libwanting.so"))
          .isInstanceOfSatisfying(
              ZerohopException.class,
              e -> assertThat(e.category()).isEqualTo(ZerohopException.Category.FALLBACK))
          .message()
          .matches(
              "the native library requires glibc 9.87 or newer, and this system has glibc"
                  + " 2[.][0-9]+ [(]/.*libc.so.6[)] [(]/lib/libwanting.so[)]; .*")
          .doesNotContain("noexec");
    }
  }

  @Test
  void otherReasonsOfTheLinkerAreNoMatterOfGlibc() {
    assertThat(GlibcVersion.shortage(null)).isNull();
    assertThat(GlibcVersion.shortage("/tmp/x.so: failed to map segment from shared object"))
        .isNull();
    assertThat(GlibcVersion.shortage("/none/libc.so.6: version `GLIBC_2.34' not found (x)"))
        .asString()
        .contains("glibc 2.34 or newer", "an older one (/none/libc.so.6)");
  }

  /** A library linked to a C library of a version to come. */
  private Path wanting(final String version) throws IOException, InterruptedException {
    Files.writeString(scratch.resolve("new.c"), "int zh_new(void) { return 1; }\n");
    Files.writeString(scratch.resolve("new.map"), version + " { zh_new; };\n");
    Files.writeString(
        scratch.resolve("use.c"), "int zh_new(void);\nint zh_use(void) { return zh_new(); }\n");
    compile("-nostdlib", "-Wl,-soname,libc.so.6,--version-script,new.map", "-o", "new.so", "new.c");
    compile("-nostdlib", "-o", "use.so", "use.c", "new.so");
    return scratch.resolve("use.so");
  }

  private void compile(final String... arguments) throws IOException, InterruptedException {
    final List<String> command = new ArrayList<>(List.of("cc", "-shared", "-fPIC"));
    command.addAll(List.of(arguments));
    final Process compiler;
    try {
      compiler = new ProcessBuilder(command).directory(scratch.toFile()).inheritIO().start();
    } catch (final IOException e) {
      throw new TestAbortedException("there is no C compiler to make a library with", e);
    }
    assertThat(compiler.waitFor()).isZero();
  }
}
