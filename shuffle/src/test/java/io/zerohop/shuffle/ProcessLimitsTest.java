package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.NativeLibrary;
import java.nio.file.Files;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.opentest4j.TestAbortedException;

/**
 * Nodes of a user that may have no more threads ({@code ulimit -u}), as in a container at its
 * {@code pids.max}, and no locked memory ({@code ulimit -l}). The kernel lets root have more than
 * the limits, so they run as another user, whom setpriv makes.
 */
class ProcessLimitsTest {
  /** Of nobody's, nor of another run's here, since all processes of a user count. */
  private static final String USER = Long.toString(61_000 + ProcessHandle.current().pid() % 4_000);

  private static final List<String> AS_USER =
      List.of(
          "setpriv",
          "--reuid=" + USER,
          "--regid=" + USER,
          "--clear-groups",
          "--inh-caps=+dac_override",
          "--ambient-caps=+dac_override",
          "prlimit",
          "--nproc=120",
          "--memlock=0",
          // Their JVMs' own threads stay as many as they are: one that ends makes room for another.
          "env",
          "JDK_JAVA_OPTIONS=-XX:-UseDynamicNumberOfCompilerThreads -XX:-UseDynamicNumberOfGCThreads");

  @TempDir private java.nio.file.Path temp;

  @BeforeEach
  void needsRootAndSetpriv() {
    NativeLibrary.require();
    if (Descriptor.userId() == 0 && Files.isExecutable(java.nio.file.Path.of("/usr/bin/setpriv"))) {
      return;
    }
    final String missing = "limits of another user can only be set as root with setpriv";
    if (Boolean.parseBoolean(System.getenv("CI"))) {
      throw new AssertionError(missing);
    }
    System.err.println("NOTICE: skipped: " + missing);
    throw new TestAbortedException(missing);
  }

  @Test
  void aNodeThatGetsNoThreadsSaysSoAndLeavesNothingBehind() throws Exception {
    try (NodeProcess node = new NodeProcess(AS_USER, temp.resolve("s"), "node")) {
      assertThat(node.ask("exhaust")).isEqualTo("ok");
      final String[] answer = node.ask("another").split(" ", 2);
      assertThat(answer[0]).as(answer[1]).isNotEqualTo("failed:");
      assertThat(Integer.parseInt(answer[0])).isPositive();
      assertThat(answer[1]).contains("ulimit -u");
      assertThat(node.ask("release")).isEqualTo("ok");
    }
  }

  @Test
  void aReaderWithoutThreadsStagesAndAnOwnerServesOn() throws Exception {
    final java.nio.file.Path base = temp.resolve("s");
    try (NodeProcess one = new NodeProcess(AS_USER, base, "1");
        NodeProcess two = new NodeProcess(AS_USER, base, "2");
        NodeProcess three = new NodeProcess(AS_USER, base, "3")) {
      assertThat(one.ask("write", 1, 3)).isEqualTo("ok");
      assertThat(three.ask("write", 3, 3)).isEqualTo("ok");
      assertThat(one.ask("read", "3", three.location(), 3, 3)).isEqualTo("[PEER]");
      assertThat(two.ask("exhaust")).isEqualTo("ok");
      assertThat(two.ask("read", "1", one.location(), 1, 3)).isEqualTo("[STAGED]");
      // Again, since the JVMs' own threads come and go.
      assertThat(two.ask("exhaust")).isEqualTo("ok");
      assertThat(three.ask("read", "1", one.location(), 1, 3)).isEqualTo("[STAGED]");
      assertThat(two.ask("write", 2, 3)).isEqualTo("ok");
      assertThat(one.ask("read", "2", two.location(), 2, 3)).isEqualTo("[PEER]");
      assertThat(two.ask("release")).isEqualTo("ok");
      assertThat(two.ask("read", "3", three.location(), 3, 3)).isEqualTo("[PEER]");
    }
  }

  /** What would have a thread of its own is done by the one that is always there. */
  @Test
  void whatHasToBeDoneIsDoneByHousekeeping() throws Exception {
    try (NodeProcess node = new NodeProcess(AS_USER, temp.resolve("s"), "node")) {
      assertThat(node.ask("work")).isEqualTo("zerohop-long zerohop-sends");
      assertThat(node.ask("exhaust")).isEqualTo("ok");
      assertThat(node.ask("work")).isEqualTo("zerohop-housekeeping zerohop-housekeeping");
      assertThat(node.ask("release")).isEqualTo("ok");
    }
  }

  @Test
  void memoryIsSharedWithoutLockingAnyOfIt() throws Exception {
    final java.nio.file.Path base = temp.resolve("s");
    try (NodeProcess one = new NodeProcess(AS_USER, base, "1");
        NodeProcess two = new NodeProcess(AS_USER, base, "2")) {
      assertThat(one.limit("Max locked memory")).isEqualTo("0");
      assertThat(one.ask("write", 1, 20)).isEqualTo("ok");
      assertThat(two.ask("read", "1", one.location(), 1, 20)).isEqualTo("[PEER]");
    }
  }
}
