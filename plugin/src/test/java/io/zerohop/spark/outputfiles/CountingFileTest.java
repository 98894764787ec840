package io.zerohop.spark.outputfiles;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.outputfiles.PartitionOutputStream.CountingFile;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CountingFileTest {
  private static final int PARTITIONS = 20;

  @Test
  void smallPartitionsAreWrittenTogether(@TempDir final Path folder) throws IOException {
    final File file = folder.resolve("output").toFile();
    final long[] lengths = new long[PARTITIONS];
    final long written =
        CountingFile.write(
            file,
            (partition, out) -> out,
            (partition, out) -> {
              assertThat(file).isEmpty();
              out.write(new byte[partition]);
              out.flush();
            },
            lengths,
            new int[PARTITIONS]);
    assertThat(lengths[PARTITIONS - 1]).isEqualTo(PARTITIONS - 1);
    assertThat(Files.size(file.toPath())).isEqualTo(written);
  }
}
