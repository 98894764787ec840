package io.zerohop.spark.outputfiles;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.spark.outputfiles.SpilledBatches.SpilledBatch;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.apache.spark.SparkConf;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.serializer.SerializerManager;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Batches in temporary files: what is read back is what was written, or the reader is told. */
class SpilledBatchTest {
  private static final int PARTITIONS = 3;
  private static final int EMPTY = 1;
  private static final int BYTES = 100_000;

  @TempDir private Path folder;
  private final SparkConf conf = new SparkConf(false);
  private final SerializerManager serializers =
      new SerializerManager(new JavaSerializer(conf), conf);
  private Path file;

  @BeforeEach
  void chooseFile() {
    file = folder.resolve("batch");
  }

  private static byte[] bytes(final int partition) {
    final byte[] bytes = new byte[partition == EMPTY ? 0 : BYTES + partition];
    new Random(partition).nextBytes(bytes);
    return bytes;
  }

  private SpilledBatch write() throws IOException {
    return SpilledBatch.write(
        file.toFile(),
        serializers,
        PARTITIONS,
        (partition, out) -> out.write(bytes(partition), 0, bytes(partition).length));
  }

  private static byte[] read(final SpilledBatch batch, final int partition) throws IOException {
    final ByteArrayOutputStream out = new ByteArrayOutputStream();
    batch.writeTo(partition, out);
    return out.toByteArray();
  }

  @Test
  void isReadBackInAnyOrder() throws IOException {
    try (SpilledBatch batch = write()) {
      for (int partition = PARTITIONS - 1; partition >= 0; partition--) {
        assertThat(read(batch, partition)).isEqualTo(bytes(partition));
      }
      assertThat(batch.bytes()).isEqualTo(Files.size(file));
    }
  }

  @Test
  void aFlippedByteIsFoundInItsPartitionAndNowhereElse() throws IOException {
    try (SpilledBatch batch = write()) {
      Damage.flip(file.toFile(), BYTES + BYTES / 2); // In the last partition.
      assertThat(read(batch, 0)).isEqualTo(bytes(0));
      assertThatThrownBy(() -> read(batch, 2))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("partition 2")
          .hasMessageContaining(file.toString())
          .hasMessageContaining("damaged");
    }
  }

  @Test
  void closingDeletesTheFile() throws IOException {
    final SpilledBatch batch = write();
    read(batch, 0);
    batch.close();
    assertThat(folder).isEmptyDirectory();
    batch.close();
  }

  @Test
  void whatCannotBeWrittenLeavesNoFile() {
    final File target = file.toFile();
    assertThatThrownBy(
            () ->
                SpilledBatch.write(
                    target,
                    serializers,
                    PARTITIONS,
                    (partition, out) -> {
                      out.write(bytes(0));
                      throw new IOException("No space left on device");
                    }))
        .hasMessageContaining("No space");
    assertThat(folder).isEmptyDirectory();
  }
}
