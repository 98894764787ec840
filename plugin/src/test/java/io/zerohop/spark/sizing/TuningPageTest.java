package io.zerohop.spark.sizing;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.sizing.PoolSizing.HostMemory;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

/** The pools that docs/tuning.md names are those that executors of that kind would have. */
class TuningPageTest {
  private static final Path PAGE = Path.of("../docs/tuning.md");
  private static final long MIB = 1L << 20;
  private static final long MACHINE = 512 << 10;

  @Test
  void thePoolsOfTheTableAreThoseOfExecutors() throws IOException {
    final List<String[]> rows =
        Files.readAllLines(PAGE).stream()
            .filter(line -> line.startsWith("| Kubernetes") || line.startsWith("| YARN"))
            .map(line -> line.split("\\s*\\|\\s*"))
            .toList();
    assertThat(rows).hasSize(7);
    for (final String[] row : rows) {
      assertThat(row[7]).as(String.join(" | ", row)).isEqualTo(pool(row) + " MiB");
    }
  }

  @Test
  void thePoolOfAnH100IsAFifth() throws IOException {
    final long pool = PoolSizing.devicePoolBytes(81_079 * MIB) / MIB;
    assertThat(Files.readString(PAGE))
        .contains(
            String.format(Locale.ROOT, "| %,d MiB ([measured]", pool),
            String.format(Locale.ROOT, "| %,d MiB |", 640 + pool));
  }

  /** What an executor has, in MiB: where it runs, heap, cores, executors, overhead, pinned. */
  private static long pool(final String[] row) {
    final long heap = mib(row[2]);
    final SparkConf conf =
        new SparkConf(false)
            .set("spark.master", row[1].startsWith("YARN") ? "yarn" : "k8s://api")
            .set("spark.executor.cores", row[3])
            .set("spark.rapids.memory.pinnedPool.size", mib(row[6]) + "m");
    if (!row[4].equals("any")) {
      conf.set("spark.executor.instances", row[4]);
    }
    if (!row[5].equals("default")) {
      conf.set("spark.executor.memoryOverhead", mib(row[5]) + "m");
    }
    final HostMemory host =
        new HostMemory(MACHINE * MIB, MACHINE * MIB, Long.MAX_VALUE, heap * MIB, 64);
    return new PoolSizing(conf, host).bytes() / MIB;
  }

  private static long mib(final String gib) {
    return gib.equals("–") ? 0 : Long.parseLong(gib.replace(" GiB", "")) << 10;
  }
}
