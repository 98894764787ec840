package io.zerohop.spark.outputfiles;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.spark.outputfiles.MapOutputFiles.OutputFile;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.zip.CRC32C;
import org.apache.spark.network.buffer.FileSegmentManagedBuffer;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.util.MapConfigProvider;
import org.apache.spark.network.util.TransportConf;
import org.apache.spark.storage.ShuffleBlockId;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Blocks in files: damage is found whichever way their bytes are asked for. */
class LateBufferTest {
  private static final int START = 1_000;
  private static final int BYTES = 50_000;
  private static final ShuffleBlockId ID = new ShuffleBlockId(7, 8, 0);
  private static final TransportConf CONF =
      new TransportConf("shuffle", new MapConfigProvider(Map.of()));

  @TempDir private Path folder;
  private final AtomicInteger checks = new AtomicInteger();
  private final byte[] bytes = new byte[START + BYTES];
  private Path file;
  private OutputFile output;

  @BeforeEach
  void write() throws IOException {
    new Random(1).nextBytes(bytes);
    file = Files.write(folder.resolve("data"), bytes);
    final CRC32C sum = new CRC32C();
    sum.update(bytes, START, BYTES);
    output = new OutputFile(new int[] {(int) sum.getValue()}, null);
  }

  private LateBuffer buffer() {
    final ManagedBuffer stored = new FileSegmentManagedBuffer(CONF, file.toFile(), START, BYTES);
    return LateBuffer.ofFile(
        stored,
        () -> {
          checks.incrementAndGet();
          output.verify(ID, stored);
        });
  }

  /** How a block's bytes are asked for. */
  private enum Way {
    MAPPED {
      @Override
      byte[] read(final ManagedBuffer buffer) throws IOException {
        final ByteBuffer mapped = buffer.nioByteBuffer();
        final byte[] all = new byte[mapped.remaining()];
        mapped.get(all);
        return all;
      }
    },
    STREAM {
      @Override
      byte[] read(final ManagedBuffer buffer) throws IOException {
        try (InputStream in = buffer.createInputStream()) {
          return in.readAllBytes();
        }
      }
    },
    NETTY {
      @Override
      byte[] read(final ManagedBuffer buffer) throws IOException {
        assertThat(buffer.convertToNetty()).isNotNull();
        return STREAM.read(buffer); // What the network sends the file's bytes by is the kernel.
      }
    };

    abstract byte[] read(ManagedBuffer buffer) throws IOException;
  }

  @ParameterizedTest
  @EnumSource
  void whatIsIntactIsGivenAndVerifiedOnce(final Way way) throws IOException {
    final LateBuffer buffer = buffer();
    assertThat(buffer.size()).isEqualTo(BYTES);
    assertThat(checks).as("its size is no reason to read it").hasValue(0);
    assertThat(way.read(buffer)).isEqualTo(Arrays.copyOfRange(bytes, START, START + BYTES));
    way.read(buffer);
    assertThat(checks).hasValue(1);
  }

  @ParameterizedTest
  @EnumSource
  void aFlippedByteIsFound(final Way way) throws IOException {
    Damage.flip(file.toFile(), START + BYTES - 1);
    final LateBuffer buffer = buffer();
    for (int time = 0; time < 2; time++) {
      assertThatThrownBy(() -> way.read(buffer))
          .isInstanceOf(IOException.class)
          .hasMessageContaining(ID.toString())
          .hasMessageContaining(file.toString())
          .hasMessageContaining("damaged");
    }
  }

  @Test
  void whatIsNotOfTheBlockDoesNotMatter() throws IOException {
    Damage.flip(file.toFile(), START - 1);
    assertThat(Way.STREAM.read(buffer())).hasSize(BYTES);
  }
}
