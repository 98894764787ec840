package io.zerohop.device.host;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is left, read from files as the kernel writes them. */
final class AvailableMemoryTest {
  private static final long GIB = 1L << 30;

  @TempDir Path scratch;

  private Path proc;
  private Path cgroups;

  @BeforeEach
  void aMachineWithEightGibibytesLeft() throws IOException {
    proc = Files.createDirectories(scratch.resolve("proc/self")).getParent();
    cgroups = Files.createDirectory(scratch.resolve("cgroup"));
    write(proc.resolve("meminfo"), "MemTotal: 16777216 kB\nMemAvailable:    8388608 kB\n");
  }

  private static void write(final Path file, final String text) throws IOException {
    Files.createDirectories(file.getParent());
    Files.writeString(file, text);
  }

  private void assertLeft(final long bytes) {
    assertThat(new AvailableMemory(proc, cgroups).measure())
        .isEqualTo(Math.max(0, bytes - AvailableMemory.HEADROOM_BYTES));
  }

  @Test
  void withoutControlGroupsTheMachineCounts() {
    assertLeft(8 * GIB);
  }

  @Test
  void theTightestGroupOnTheWayUpCounts() throws IOException {
    write(proc.resolve("self/cgroup"), "0::/outer/inner\n");
    write(cgroups.resolve("outer/inner/memory.max"), "max\n");
    write(cgroups.resolve("outer/memory.max"), 4 * GIB + "\n");
    write(cgroups.resolve("outer/memory.current"), 3 * GIB + "\n");
    assertLeft(GIB);
    write(
        cgroups.resolve("outer/memory.stat"),
        "anon 5\ninactive_file " + GIB / 2 + "\nactive_file " + GIB / 4 + "\n");
    assertLeft(GIB + GIB / 2 + GIB / 4);
    write(cgroups.resolve("outer/inner/memory.max"), GIB + "\n");
    write(cgroups.resolve("outer/inner/memory.current"), GIB + 4096 + "\n");
    assertLeft(0);
  }

  @Test
  void insideAContainerOnlyItsRootIsSeen() throws IOException {
    write(cgroups.resolve("memory.max"), 2 * GIB + "\n");
    write(cgroups.resolve("memory.current"), "0\n");
    for (final String group : new String[] {"0::/\n", "0::/../../pod\n", "0::/gone\n"}) {
      write(proc.resolve("self/cgroup"), group);
      assertLeft(2 * GIB);
    }
  }

  @Test
  void theOlderControlGroupsCountToo() throws IOException {
    write(proc.resolve("self/cgroup"), "9:cpu:/x\n5:hugetlb,memory:/docker/1\n");
    write(cgroups.resolve("memory/docker/1/memory.limit_in_bytes"), 3 * GIB + "\n");
    write(cgroups.resolve("memory/docker/1/memory.usage_in_bytes"), 2 * GIB + "\n");
    write(cgroups.resolve("memory/docker/1/memory.stat"), "total_inactive_file " + GIB + "\n");
    write(cgroups.resolve("memory/memory.limit_in_bytes"), "9223372036854771712\n");
    write(cgroups.resolve("memory/memory.usage_in_bytes"), 10 * GIB + "\n");
    assertLeft(2 * GIB);
  }

  @Test
  void aLimitIsTheTightestOnTheWayUpWhateverIsUsed() throws IOException {
    final AvailableMemory memory = new AvailableMemory(proc, cgroups);
    assertThat(memory.machineTotal()).isEqualTo(16 * GIB);
    assertThat(memory.limit()).isEqualTo(Long.MAX_VALUE);
    write(proc.resolve("self/cgroup"), "0::/outer/inner\n");
    write(cgroups.resolve("outer/inner/memory.max"), "max\n");
    write(cgroups.resolve("outer/memory.max"), 4 * GIB + "\n");
    write(cgroups.resolve("outer/memory.current"), 3 * GIB + "\n");
    assertThat(memory.limit()).isEqualTo(4 * GIB);
    write(cgroups.resolve("outer/inner/memory.max"), GIB + "\n");
    assertThat(memory.limit()).isEqualTo(GIB);
  }

  @Test
  void aLimitOfAnOlderGroupAboveCounts() throws IOException {
    write(proc.resolve("self/cgroup"), "5:memory:/yarn/container\n0::/\n");
    write(cgroups.resolve("memory/yarn/container/memory.limit_in_bytes"), "9223372036854771712\n");
    write(cgroups.resolve("memory/yarn/memory.limit_in_bytes"), 3 * GIB + "\n");
    assertThat(new AvailableMemory(proc, cgroups).limit()).isEqualTo(3 * GIB);
  }
}
