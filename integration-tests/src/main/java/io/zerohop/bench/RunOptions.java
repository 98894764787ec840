package io.zerohop.bench;

import java.nio.file.Path;
import picocli.CommandLine.Option;

/** What {@code run.sh} says of itself to every benchmark. */
final class RunOptions {
  @Option(names = "--commit", hidden = true, required = true)
  private String commit;

  @Option(names = "--project", hidden = true, required = true)
  private Path project;

  @Option(names = "--run-dir", hidden = true, required = true)
  private Path folder;

  /** What is measured. */
  String commit() {
    return commit;
  }

  /** Where it was built. */
  Path project() {
    return project;
  }

  /** A folder for what is gone when the benchmark ends. */
  Path folder() {
    return folder;
  }
}
