package io.zerohop.device;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Runs src/main/c/build.sh where no compiler for the other architecture is. */
class NativeBuildTest {
  private static final long LIMIT_SECONDS = 120;

  @TempDir private Path folder;

  @Test
  void aReleaseFailsWithoutTheOtherArchitecture() throws Exception {
    assertThat(build("true")).isNotZero();
    assertThat(said()).contains("ERROR: a release has a native library for").contains("CC_A");
  }

  @Test
  void anyOtherBuildGoesOn() throws Exception {
    assertThat(build("false")).isZero();
    assertThat(said()).contains("NOTICE: no C compiler for");
    assertThat(folder.resolve("classes/io/zerohop/device/lib")).isNotEmptyDirectory();
  }

  private int build(final String required) throws Exception {
    final ProcessBuilder builder =
        new ProcessBuilder(
                "sh",
                "src/main/c/build.sh",
                System.getProperty("java.home"),
                System.getProperty("os.arch"),
                folder.resolve("classes").toString(),
                "1",
                folder.resolve("compared").toString())
            .redirectErrorStream(true)
            .redirectOutput(folder.resolve("said").toFile());
    final boolean arm64 = System.getProperty("os.arch").equals("aarch64");
    builder.environment().put(arm64 ? "CC_AMD64" : "CC_AARCH64", "no-such-compiler");
    builder.environment().put("ZEROHOP_NATIVES_REQUIRED", required);
    final Process process = builder.start();
    assertThat(process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)).isTrue();
    return process.exitValue();
  }

  private String said() throws Exception {
    return Files.readString(folder.resolve("said"));
  }
}
