package io.zerohop.spark.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import javax.tools.ToolProvider;

/**
 * Compiles programs of integration-tests/checks into a folder of the test's, and runs them and
 * other commands in the repository's root. Not thread-safe.
 */
final class CheckRunner {
  static final Path REPOSITORY = Path.of("..").toAbsolutePath().normalize();
  private static final long LIMIT_SECONDS = 120;

  private final Path classes;

  /** What a command has printed, and its exit status. */
  record Outcome(int status, String text) {}

  CheckRunner(final Path classes, final String... names) {
    this.classes = classes;
    final List<String> arguments = new ArrayList<>(List.of("-d", classes.toString()));
    for (final String name : names) {
      arguments.add(
          REPOSITORY.resolve("integration-tests/checks").resolve(name + ".java").toString());
    }
    assertThat(
            ToolProvider.getSystemJavaCompiler()
                .run(null, null, null, arguments.toArray(new String[0])))
        .isZero();
  }

  Outcome java(final Map<String, String> environment, final String name, final String... arguments)
      throws Exception {
    final String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    final List<String> command = new ArrayList<>(List.of(java, "-cp", classes.toString(), name));
    command.addAll(Arrays.asList(arguments));
    return run(environment, command);
  }

  Outcome run(final Map<String, String> environment, final List<String> command) throws Exception {
    final Path out = Files.createTempFile(classes, "out", ".txt");
    final ProcessBuilder builder =
        new ProcessBuilder(command)
            .directory(REPOSITORY.toFile())
            .redirectErrorStream(true)
            .redirectOutput(out.toFile());
    builder.environment().putAll(environment);
    final Process process = builder.start();
    assertThat(process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)).as("%s ends", command).isTrue();
    return new Outcome(process.exitValue(), Files.readString(out));
  }
}
