package io.zerohop.spark.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.doctor.Examination.Notes;
import io.zerohop.spark.doctor.Finding.Verdict;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Limits of a machine whose files the test writes. */
class LimitCheckTest {
  private static final String NAMES =
      """
      Max processes             %s                 unlimited            processes
      Max open files            %s                 524288               files
      Max locked memory         %s                 unlimited            bytes
      """;

  @TempDir private Path root;
  private long memory = 8L << 30;
  private long shm = 8L << 30;
  private boolean adapters = true;
  private boolean ucx = true;

  /** The file as the kernel writes it, with limits of processes, files and locked memory. */
  private static String limits(final String processes, final String files, final String locked) {
    return String.format(Locale.ROOT, NAMES, processes, files, locked);
  }

  @BeforeEach
  void plenty() throws IOException {
    write("proc/self/limits", limits("unlimited", "65536", "unlimited"));
    write("proc/self/status", "Uid:\t1000\t1000\nThreads:\t20\nCapEff:\t0000000000000000\n");
  }

  private void write(final String name, final String text) throws IOException {
    Files.createDirectories(root.resolve(name).getParent());
    Files.writeString(root.resolve(name), text);
  }

  private Finding find(final Item item) {
    final Notes notes = new Notes();
    final LimitCheck.Room room =
        new LimitCheck.Room() {
          @Override
          public long memory() {
            return memory;
          }

          @Override
          public long in(final Path folder) throws IOException {
            if (shm < 0) {
              throw new IOException("not there");
            }
            return shm;
          }
        };
    new LimitCheck(new SystemFiles(root), room, adapters, ucx).run(notes);
    assertThat(notes.findings()).hasSize(5);
    return notes.findings().stream().filter(it -> it.item() == item).findFirst().orElseThrow();
  }

  @Test
  void whatOnlyUcxWantsIsSkippedWhereNobodyHasAskedForIt() throws IOException {
    ucx = false;
    shm = 0;
    write("proc/self/limits", limits("unlimited", "65536", "8388608"));
    assertThat(find(Item.MEMLOCK).verdict()).isEqualTo(Verdict.SKIP);
    assertThat(find(Item.SHM).verdict()).isEqualTo(Verdict.SKIP);
  }

  @Test
  void plentyIsFine() {
    for (final Item item :
        new Item[] {Item.MEMLOCK, Item.FILES, Item.PROCESSES, Item.MEMORY, Item.SHM}) {
      assertThat(find(item).verdict()).as("%s", item).isEqualTo(Verdict.OK);
    }
  }

  @Test
  void lockedMemoryMattersToAdaptersAndToThoseWhoMayNotOverrideIt() throws IOException {
    write("proc/self/limits", limits("unlimited", "65536", "8388608"));
    assertThat(find(Item.MEMLOCK).verdict()).isEqualTo(Verdict.WARN);
    adapters = false;
    assertThat(find(Item.MEMLOCK).verdict()).isEqualTo(Verdict.OK);
    adapters = true;
    write("proc/self/status", "Uid:\t1000\nCapEff:\t0000000000004000\n");
    assertThat(find(Item.MEMLOCK).verdict()).isEqualTo(Verdict.OK);
  }

  @Test
  void fewFilesAreAWarning() throws IOException {
    write("proc/self/limits", limits("unlimited", "1024", "unlimited"));
    assertThat(find(Item.FILES).verdict()).isEqualTo(Verdict.WARN);
    assertThat(find(Item.FILES).message().remedy()).contains("ulimit -n");
  }

  @Test
  void threadsOfTheUserCountAgainstItsLimit() throws IOException {
    write("proc/self/limits", limits("1000", "65536", "unlimited"));
    write("proc/17/status", "Uid:\t1000\t1000\nThreads:\t700\n");
    write("proc/18/status", "Uid:\t1001\t1001\nThreads:\t5000\n");
    assertThat(find(Item.PROCESSES).verdict()).isEqualTo(Verdict.WARN);
    assertThat(find(Item.PROCESSES).message().happened())
        .startsWith("300 threads")
        .contains("ulimit -u");
    write("proc/17/status", "Uid:\t1000\t1000\nThreads:\t980\n");
    assertThat(find(Item.PROCESSES).verdict()).isEqualTo(Verdict.FAIL);
  }

  @Test
  void theTightestGroupOnTheWayUpCounts() throws IOException {
    write("proc/self/cgroup", "0::/pod/container\n");
    write("sys/fs/cgroup/pod/pids.max", "100\n");
    write("sys/fs/cgroup/pod/pids.current", "60\n");
    write("sys/fs/cgroup/pod/container/pids.max", "max\n");
    final Finding found = find(Item.PROCESSES);
    assertThat(found.verdict()).isEqualTo(Verdict.FAIL);
    assertThat(found.message().happened()).startsWith("40 threads").contains("pids.max");
    write("proc/self/cgroup", "5:pids:/a\n");
    write("sys/fs/cgroup/pids/a/pids.max", "600\n");
    write("sys/fs/cgroup/pids/a/pids.current", "200\n");
    assertThat(find(Item.PROCESSES).message().happened()).startsWith("400 threads");
  }

  @Test
  void littleMemoryIsAWarningAndHardlyAnyAFailure() {
    memory = 500L << 20;
    assertThat(find(Item.MEMORY).verdict()).isEqualTo(Verdict.WARN);
    memory = 10L << 20;
    assertThat(find(Item.MEMORY).verdict()).isEqualTo(Verdict.FAIL);
  }

  @Test
  void aSmallDevShmIsAWarning() {
    shm = 32L << 20;
    assertThat(find(Item.SHM).verdict()).isEqualTo(Verdict.WARN);
    shm = -1;
    assertThat(find(Item.SHM).verdict()).isEqualTo(Verdict.WARN);
  }
}
