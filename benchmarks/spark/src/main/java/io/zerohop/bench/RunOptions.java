package io.zerohop.bench;

import java.nio.file.Path;
import java.util.Map;
import picocli.CommandLine.Option;

/** What every benchmark is told: what it measures, and where it may leave something. */
final class RunOptions {
  @Option(
      names = "--out",
      paramLabel = "FILE",
      description = "the JSON to write (default: docs/measurements/BENCH.json)")
  private Path out;

  @Option(names = "--commit", hidden = true, required = true)
  private String commit;

  @Option(names = "--project", hidden = true, required = true)
  private Path project;

  @Option(names = "--run-dir", hidden = true, required = true)
  private Path run;

  /** What is measured. */
  String commit() {
    return commit;
  }

  /** The folder of the built project. */
  Path project() {
    return project;
  }

  /** A folder of this run's own, which is deleted behind it. */
  Path folder() {
    return run;
  }

  Measurement measurement(final String bench, final Map<String, Object> setting) {
    return new Measurement(bench, commit, setting);
  }

  Path out(final String bench) {
    return out != null ? out : project.resolve("docs/measurements/" + bench + ".json");
  }
}
