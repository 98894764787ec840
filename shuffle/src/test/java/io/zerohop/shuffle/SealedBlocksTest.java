package io.zerohop.shuffle;

import static io.zerohop.shuffle.TestNodes.eventually;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.device.host.HostDevice;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.write.MapOutput;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a peer can do to an owner's blocks: read them. */
class SealedBlocksTest {
  private static final int PARTITIONS = 20;
  private static final int MOST = 300;

  /** Tells segments of blocks from roots. */
  private static final long SEGMENT_BYTES = 3L << 20;

  @TempDir private java.nio.file.Path base;
  private Leaks leaks;
  private ShuffleNode owner;
  private ShuffleNode reader;

  @BeforeEach
  void start() {
    new HostDevice().close();
    leaks = new Leaks();
    owner = node("owner", null);
    reader = node("reader", null);
    write(0);
    readInPlace();
  }

  @AfterEach
  void stop() {
    reader.close();
    owner.close();
    leaks.check();
  }

  private ShuffleNode node(final String executorId, final DeviceOnlyGpu gpu) {
    return ShuffleNode.start(
        TestNodes.config(base.resolve("s"), executorId).set("segment.size", SEGMENT_BYTES), gpu);
  }

  /** In host memory, GPU or not. */
  private void write(final long map) {
    try (MapOutput writer = owner.newMapOutput(1, map, PARTITIONS)) {
      writer.append(TestBlocks.batch(1, map, 0, PARTITIONS, MOST));
      writer.commit();
    } catch (final IOException e) {
      throw new UncheckedIOException(e); // It has no files.
    }
  }

  private void readInPlace() {
    final BlockSource source =
        TestBlocks.source("owner", owner.location(), 1, 0, 1, 1, PARTITIONS, MOST);
    assertThat(TestNodes.fetchAndCheck(reader, TestNodes.noStaging(), 1, MOST, source))
        .isEqualTo(Map.of(BlockPath.PEER, source.blocks().size()));
  }

  @Test
  void readersMapBlocksReadOnlyAndLanesWritable() throws IOException {
    assertThat(mappings(true)).as("the owner's, and the reader's").containsOnlyOnce("rw-s", "r--s");
    assertThat(mappings(false)).as("both nodes' roots, one of them twice").hasSize(3);
    assertThat(mappings(false)).containsOnly("rw-s");
  }

  /** The driver of a GPU locks memory only where it is mapped for writing. */
  @Test
  void withAGpuReadersMapAsTheOwnerAllows() throws IOException {
    reader.close();
    reader = node("reader", new DeviceOnlyGpu());
    readInPlace();
    assertThat(mappings(true)).containsOnlyOnce("rw-s", "r--s");
    reader.close();
    owner.close();
    owner = node("owner", new DeviceOnlyGpu());
    reader = node("reader", new DeviceOnlyGpu());
    write(0);
    readInPlace();
    assertThat(mappings(true)).containsExactly("rw-s", "rw-s");
  }

  /** A process of the same user opens what another one has open. */
  @Test
  void blocksCannotBeWrittenByADescriptorThatIsOpenedAgain() throws IOException {
    // The owner may not have closed the descriptor yet that it has handed to the reader.
    eventually("one descriptor of the segment", () -> segments().size() == 1);
    final List<java.nio.file.Path> segments = segments();
    try (FileChannel again =
        FileChannel.open(segments.get(0), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      assertThat(again.size()).isEqualTo(SEGMENT_BYTES);
      assertThatThrownBy(() -> again.write(ByteBuffer.allocate(4096), 0))
          .isInstanceOf(IOException.class);
      assertThatThrownBy(() -> again.map(MapMode.READ_WRITE, 0, SEGMENT_BYTES))
          .isInstanceOf(IOException.class);
    }
    readInPlace();
  }

  @Test
  void theOwnerGoesOnWriting() {
    for (int map = 1; map < 5; map++) {
      write(map);
    }
    readInPlace();
  }

  /** Access rights of this process's mappings of segments. */
  private static List<String> mappings(final boolean ofBlocks) throws IOException {
    return Files.readAllLines(java.nio.file.Path.of("/proc/self/maps")).stream()
        .filter(line -> line.contains("/memfd:zerohop-"))
        .filter(line -> (bytes(line) == SEGMENT_BYTES) == ofBlocks)
        .map(line -> line.split(" ")[1])
        .toList();
  }

  private static long bytes(final String mapping) {
    final String[] range = mapping.split(" ")[0].split("-");
    return Long.parseLong(range[1], 16) - Long.parseLong(range[0], 16);
  }

  /** This process's descriptors of segments of blocks. */
  private static List<java.nio.file.Path> segments() {
    try (Stream<java.nio.file.Path> all = Files.list(java.nio.file.Path.of("/proc/self/fd"))) {
      return all.filter(SealedBlocksTest::isSegment).toList();
    } catch (final IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static boolean isSegment(final java.nio.file.Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).toString().startsWith("/memfd:zerohop-")
          && Files.size(descriptor) == SEGMENT_BYTES;
    } catch (final IOException e) {
      return false; // The one that lists the folder.
    }
  }
}
