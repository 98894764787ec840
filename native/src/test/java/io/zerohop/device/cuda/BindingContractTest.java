package io.zerohop.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.ChildJvm;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import jcuda.JCudaVersion;
import jcuda.LibUtils;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * JCuda's own library and Zerohop's for arm64 hand the same to the driver, and the same back. Each
 * runs on a stand-in for the driver; what they are to say was written down from JCuda's own.
 */
final class BindingContractTest {
  private static final String LIBRARY =
      "/lib/" + System.mapLibraryName(LibUtils.createPlatformLibraryName("JCudaDriver-12.6.0"));
  private static final Path EXPECTED = Path.of("src/test/resources/jcuda-calls.txt");

  /** Zerohop's, for the architecture whose jar has JCuda's. */
  private static final Path OURS = Path.of("target/jcuda-x86_64");

  private static final Path SOURCES = Path.of("src/main");
  private static final Path CALLS =
      Path.of("src/test/java/io/zerohop/device/cuda/BindingCalls.java");

  @TempDir Path drivers;

  @BeforeEach
  void buildDriver() throws Exception {
    StubDriver.compile(drivers, Path.of("src/test/c/libcuda.c"));
  }

  /** On x86-64 that is JCuda's, on arm64 Zerohop's. */
  @Test
  void theLibraryOfTheJarKeepsTheContract() throws Exception {
    assertThat(LIBRARY).contains(JCudaVersion.get());
    assertThat(calls(List.of())).isEqualTo(Files.readAllLines(EXPECTED));
  }

  @Test
  void oursKeepsItWhereJCudaHasOneToo() throws Exception {
    if (Files.exists(Path.of(OURS + LIBRARY))) {
      final List<String> first =
          List.of("-Xcheck:jni", "-Xbootclasspath/a:" + OURS.toAbsolutePath());
      assertThat(calls(first)).isEqualTo(Files.readAllLines(EXPECTED));
    } else {
      assertThat(System.getProperty("os.arch")).isNotEqualTo("amd64");
    }
  }

  /** A call that the product makes and the library lacks would end a task on arm64 alone. */
  @Test
  void oursHasEveryCallOfTheProduct() throws IOException {
    final Path repository = Path.of("..");
    final List<String> called = new ArrayList<>();
    for (final String module : List.of("native", "shuffle", "plugin")) {
      called.addAll(matches(repository.resolve(module).resolve(SOURCES), "JCudaDriver[.](cu\\w+)"));
    }
    assertThat(called).contains("cuInit", "cuLaunchKernel");
    assertThat(matches(SOURCES.resolve("c/jcuda"), "ZH_CALL[(](cu\\w+),")).containsAll(called);
    assertThat(matches(CALLS, "JCudaDriver[.](cu\\w+)")).containsAll(called);
  }

  private static List<String> matches(final Path folder, final String pattern) throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      final List<String> all = new ArrayList<>();
      for (final Path file :
          files.filter(f -> f.toString().matches(".*[.](java|c)")).sorted().toList()) {
        final Matcher matcher = Pattern.compile(pattern).matcher(Files.readString(file));
        while (matcher.find()) {
          all.add(matcher.group(1));
        }
      }
      return all;
    }
  }

  private List<String> calls(final List<String> options) throws Exception {
    final List<String> environment = new ArrayList<>(List.of("env", "LD_LIBRARY_PATH=" + drivers));
    if (!options.isEmpty()) {
      environment.add("JDK_JAVA_OPTIONS=" + String.join(" ", options));
    }
    try (ChildJvm child = ChildJvm.start(environment, BindingCalls.class)) {
      final List<String> lines = new ArrayList<>();
      for (String line = child.line(); line != null; line = child.line()) {
        lines.add(line);
      }
      assertThat(child.exitCode()).isZero();
      return lines;
    }
  }
}
