package io.zerohop.spark.keeperdaemon;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/** Command lines of the daemon that are not valid: none of them makes its folder. */
class KeeperCommandTest {
  @TempDir private Path scratch;

  private String refusal(final String... options) {
    final StringWriter said = new StringWriter();
    final Path folder = scratch.resolve("d");
    final CommandLine command = new CommandLine(new KeeperCommand());
    final String[] all = new String[options.length + 2];
    System.arraycopy(options, 0, all, 2, options.length);
    all[0] = "--folder";
    all[1] = folder.toString();
    assertThat(command.setErr(new PrintWriter(said, true)).execute(all))
        .isEqualTo(KeeperCommand.INVALID);
    assertThat(folder).doesNotExist();
    return said.toString();
  }

  @Test
  void aLimitOfFilesNeedsADirectoryForThem() {
    assertThat(refusal("--files", "1g")).contains("--files needs --dir");
  }

  @Test
  void sizesAreOnesOfSparks() {
    assertThat(refusal("--dir", scratch.toString(), "--files", "many")).contains("--files: ");
    assertThat(refusal("--dir", scratch.toString(), "--files=-1")).contains("--files");
    assertThat(refusal("--size", "many")).contains("--size: ");
    assertThat(refusal("--size", "1k")).contains("--size is ");
  }
}
