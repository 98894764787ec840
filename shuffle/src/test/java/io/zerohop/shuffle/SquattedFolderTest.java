package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.NativeLibrary;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.opentest4j.TestAbortedException;

/** A neighbour on the host that was there first, in a mount namespace with a /tmp of its own. */
class SquattedFolderTest {
  /** Lays a folder over /tmp, which keeps what is there: the classes may be. */
  private static final String TAKE =
      "mount -t tmpfs tmpfs \"$0\" && mkdir -m 1777 \"$0/upper\" && mkdir \"$0/work\""
          + " && mount -t overlay -o lowerdir=/tmp,upperdir=\"$0/upper\",workdir=\"$0/work\""
          + " overlay /tmp && rm -rf /tmp/zerohop-0 && mkdir -m 0700 /tmp/zerohop-0"
          + " && chown 61531 /tmp/zerohop-0";

  @TempDir private Path scratch;

  private List<String> neighbour(final String then) {
    return List.of("unshare", "--mount", "sh", "-c", TAKE + " && " + then, scratch.toString());
  }

  @BeforeEach
  void needsRoot() throws Exception {
    NativeLibrary.require();
    if (Descriptor.userId() != 0
        || !Files.isExecutable(Path.of("/usr/bin/unshare"))
        || new ProcessBuilder(neighbour("true")).inheritIO().start().waitFor() != 0) {
      final String missing =
          "mount namespaces and overlays can only be tried as root with unshare (util-linux)";
      if (Boolean.parseBoolean(System.getenv("CI"))) {
        throw new AssertionError(missing);
      }
      System.err.println("NOTICE: skipped: " + missing);
      throw new TestAbortedException(missing);
    }
  }

  @Test
  void aNodeStartsWhereTmpCannotBeWritten() throws Exception {
    final String readOnly =
        "mount --bind /tmp /tmp && mount -o remount,bind,ro /tmp && exec env"
            + " JAVA_TOOL_OPTIONS='-Djava.io.tmpdir=/dev/shm -XX:-UsePerfData' \"$@\"";
    try (NodeProcess node = new NodeProcess(neighbour(readOnly), NodeProcess.DEFAULT_BASE, "1")) {
      assertThat(node.ask("write", 1, 3)).isEqualTo("ok");
      assertThat(node.ask("read", "1", node.location(), 1, 3)).isEqualTo("[LOCAL]");
      assertThat(node.ask("unregister", 1)).isEqualTo("ok");
    }
  }

  @Test
  void aNodeStartsAlthoughAFolderThatCanBeGuessedIsTaken() throws Exception {
    try (NodeProcess node =
        new NodeProcess(neighbour("exec \"$@\""), NodeProcess.DEFAULT_BASE, "1")) {
      assertThat(node.ask("write", 1, 3)).isEqualTo("ok");
      assertThat(node.ask("read", "1", node.location(), 1, 3)).isEqualTo("[LOCAL]");
      assertThat(node.ask("unregister", 1)).isEqualTo("ok");
    }
  }
}
