package io.zerohop.device;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Runs src/main/c/build.sh where no compiler for the other architecture is, and
 * src/main/cuda/build.sh with an nvcc that is a script.
 */
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

  @Test
  void anOldCompilerForGpusEndsWithTheWayOut() throws Exception {
    assertThat(kernels(Map.of())).isNotZero();
    assertThat(said())
        .contains("does not compile for sm_75 sm_80")
        .contains("CUDA 12.8 or later")
        .contains("ZEROHOP_CUDA_ARCHS=80");
    assertThat(folder.resolve("kernels.fatbin")).doesNotExist();
  }

  @Test
  void anOldCompilerForGpusCompilesForTheArchitecturesThatAreNamed() throws Exception {
    assertThat(kernels(Map.of("ZEROHOP_CUDA_ARCHS", "80 90"))).isZero();
    assertThat(folder.resolve("kernels.fatbin")).exists();
    assertThat(folder.resolve("kernels.properties"))
        .hasContent("zerohop.kernels=sm_80 sm_90 compute_90");
  }

  private int build(final String required) throws Exception {
    final boolean arm64 = System.getProperty("os.arch").equals("aarch64");
    return run(
        Map.of(
            arm64 ? "CC_AMD64" : "CC_AARCH64",
            "no-such-compiler",
            "ZEROHOP_NATIVES_REQUIRED",
            required),
        "src/main/c/build.sh",
        System.getProperty("java.home"),
        System.getProperty("os.arch"),
        folder.resolve("classes").toString(),
        "1",
        folder.resolve("compared").toString());
  }

  /** With an nvcc of a release that came before the newest GPUs. */
  private int kernels(final Map<String, String> environment) throws Exception {
    final Path nvcc = folder.resolve("nvcc");
    Files.writeString(
        nvcc,
        """
        #!/bin/sh
        case "$*" in
          --version) echo "release 12.4" ;;
          *sm_1[0-9][0-9]*) exit 1 ;;
          *) while [ "$1" != -o ]; do shift; done; echo kernels > "$2" ;;
        esac
        """);
    assertThat(nvcc.toFile().setExecutable(true)).isTrue();
    final Map<String, String> all = new HashMap<>(environment);
    all.put("NVCC", nvcc.toString());
    return run(
        all,
        "src/main/cuda/build.sh",
        "src/main/cuda/gather.cu",
        folder.resolve("kernels.fatbin").toString(),
        folder.resolve("kernels.inputs").toString());
  }

  private int run(final Map<String, String> environment, final String... script) throws Exception {
    final List<String> command = new ArrayList<>(List.of(script));
    command.add(0, "sh");
    final ProcessBuilder builder =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(folder.resolve("said").toFile());
    builder.environment().remove("ZEROHOP_CUDA_ARCHS");
    builder.environment().putAll(environment);
    final Process process = builder.start();
    assertThat(process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)).isTrue();
    return process.exitValue();
  }

  private String said() throws Exception {
    return Files.readString(folder.resolve("said"));
  }
}
