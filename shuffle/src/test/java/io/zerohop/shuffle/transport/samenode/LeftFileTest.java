package io.zerohop.shuffle.transport.samenode;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Leaks;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.host.HostDevice;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.catalog.CatalogView;
import io.zerohop.shuffle.catalog.CatalogView.ShuffleView;
import io.zerohop.shuffle.catalog.RootSegment.RootView;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.SegmentResolver;
import io.zerohop.shuffle.transport.samenode.PeerDirectory.Greeting;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A file of large blocks, each of two extents that begin and end anywhere in their parts. */
class LeftFileTest {
  private static final int MAPS = 2;
  private static final int BATCHES = 2;
  private static final int PARTITIONS = 3;
  private static final int MOST = 3 << 20;
  private static final Duration LIMIT = Duration.ofSeconds(20);

  @TempDir private Path temp;
  private final Leaks leaks = new Leaks();
  private final HostDevice device = new HostDevice();
  private final Map<Long, SegmentMemory> mapped = new HashMap<>();
  private ShuffleNode owner;
  private SocketFolder sockets;
  private PeerLink link;
  private ShuffleView shuffle;
  private LeftFolder folder;
  private WatchedFile watched;
  private final AtomicBoolean wanted = new AtomicBoolean(true);

  @BeforeEach
  void start() {
    owner =
        ShuffleNode.start(
            TestNodes.config(temp.resolve("s"), "1")
                .set("pool.size", 64L << 20)
                .set("segment.size", 32L << 20));
    for (int map = 0; map < MAPS; map++) {
      TestBlocks.put(owner, 1, map, BATCHES, PARTITIONS, MOST);
    }
    sockets = ShuffleNode.socketFolder(temp.resolve("s"), "app-test", TestNodes.SECRET);
    final String socket = owner.location().socket();
    link = PeerLink.connect(sockets.socket(socket), "reader", socket, TestNodes.SECRET, LIMIT);
    final Greeting said = Greeting.decode(link.greeting());
    final RootView root = new RootView(map(said.rootSegment()), said.incarnation(), "1");
    shuffle = new CatalogView(root, this::map, "1", said.incarnation()).shuffle(1);
    folder = LeftFolder.open(List.of(temp), 1L << 30, Long.MAX_VALUE, Clock.system());
  }

  private SegmentMemory map(final long segment) {
    return mapped.computeIfAbsent(
        segment,
        id -> new SegmentMemory(id, device.map(link.fetch(id, LIMIT), "1", PeerAccess.READ)));
  }

  @AfterEach
  void noLeaks() {
    folder.free();
    assertThat(folder.bytes()).isZero();
    mapped.values().forEach(SegmentMemory::close);
    link.close();
    sockets.close();
    device.close();
    owner.close();
    leaks.check();
  }

  private LeftFile write(final Runnable beforeWrite) throws IOException {
    return write(beforeWrite, this::map);
  }

  private LeftFile write(final Runnable beforeWrite, final SegmentResolver segments)
      throws IOException {
    watched = new WatchedFile(folder.create(), beforeWrite);
    return LeftFile.write(
        folder,
        watched,
        shuffle,
        List.of(0L, 1L),
        segments,
        wanted::get,
        cause -> {
          throw new AssertionError("it cannot be read", cause);
        });
  }

  private static byte[] block(final long map, final int partition) {
    return TestBlocks.block(1, map, BATCHES, partition, MOST);
  }

  /** Reads a block part by part, as the keeper does; absent if one is not given. */
  private static byte[] read(final LeftFile file, final long map, final int partition) {
    final ByteBuffer all = ByteBuffer.allocate((int) Math.max(0, file.bytes(map, partition)));
    do {
      final int from = all.position();
      all.limit(Math.min(all.capacity(), from + LeftBlocks.PART_BYTES));
      if (!file.read(map, partition, from, all)) {
        return null;
      }
    } while (all.position() < all.capacity());
    return all.array();
  }

  @Test
  void aLargeBlockIsReadOnce() throws IOException {
    try (LeftFile file = write(() -> {})) {
      for (int map = 0; map < MAPS; map++) {
        for (int partition = 0; partition < PARTITIONS; partition++) {
          watched.takeReadBytes();
          final byte[] expected = block(map, partition);
          assertThat(read(file, map, partition)).isEqualTo(expected);
          assertThat(watched.takeReadBytes()).isLessThan(expected.length + 1_000L);
        }
      }
    }
  }

  @Test
  void damageIsFoundInThePartWhereItIs() throws IOException {
    final byte[] expected = block(1, PARTITIONS - 1);
    assertThat(expected.length).isGreaterThan(2 * LeftBlocks.PART_BYTES);
    final byte[] last = Arrays.copyOfRange(expected, expected.length - 9, expected.length);
    try (LeftFile file = write(() -> {})) {
      final ByteBuffer all = ByteBuffer.allocate((int) file.bytes());
      watched.read(all, 0);
      final int at = lastIndexOf(all.array(), last);
      watched.write(ByteBuffer.wrap(new byte[] {(byte) ~last[0]}), at);
      assertThat(file.read(1, PARTITIONS - 1, 0, ByteBuffer.allocate(LeftBlocks.PART_BYTES)))
          .isTrue();
      assertThat(read(file, 1, PARTITIONS - 1)).isNull();
      assertThat(read(file, 0, 0)).isEqualTo(block(0, 0));
    }
  }

  /** The file has the checksums with which the block was written to memory. */
  @Test
  void damageInMemoryIsFoundInTheFirstPart() throws IOException {
    final byte[] expected = block(1, PARTITIONS - 1);
    final byte[] last = Arrays.copyOfRange(expected, expected.length - 9, expected.length);
    shuffle.outputs().get(1L).forEach(this::map);
    final Map<Long, SegmentMemory> copies = new HashMap<>();
    for (final SegmentMemory there : mapped.values()) {
      final byte[] bytes = new byte[there.bytes()];
      there.buffer().getBytes(0, bytes);
      final int at = lastIndexOf(bytes, last);
      bytes[Math.max(0, at)] = (byte) ~bytes[Math.max(0, at)];
      final SegmentMemory copy = new SegmentMemory(there.id(), device.allocate(bytes.length));
      copy.buffer().putBytes(0, bytes);
      copies.put(there.id(), copy);
    }
    try (LeftFile file = write(() -> {}, copies::get)) {
      assertThat(file.read(1, PARTITIONS - 1, 0, ByteBuffer.allocate(LeftBlocks.PART_BYTES)))
          .isFalse();
      assertThat(read(file, 1, 0)).isEqualTo(block(1, 0));
    } finally {
      copies.values().forEach(SegmentMemory::close);
    }
  }

  private static int lastIndexOf(final byte[] all, final byte[] some) {
    for (int at = all.length - some.length; at >= 0; at--) {
      if (Arrays.equals(all, at, at + some.length, some, 0, some.length)) {
        return at;
      }
    }
    return -1;
  }

  @Test
  void onlyWholePartsAreGiven() throws IOException {
    try (LeftFile file = write(() -> {})) {
      final long length = file.bytes(1, PARTITIONS - 1);
      for (final long from : new long[] {1, length, 1L << 40, LeftBlocks.PART_BYTES - 1}) {
        assertThat(file.read(1, PARTITIONS - 1, from, ByteBuffer.allocate(0))).isFalse();
        assertThat(file.read(1, PARTITIONS - 1, from, ByteBuffer.allocate(9))).isFalse();
      }
    }
  }

  @Test
  void whatIsDroppedWhileItIsWrittenIsNotWrittenToItsEnd() {
    assertThatThrownBy(() -> write(() -> wanted.set(false)))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("dropped");
    assertThat(watched.writtenBytes()).isPositive().isLessThan(2L * LeftBlocks.PART_BYTES);
  }

  /** Who drops it has locks, and to free the blocks of a large file takes long. */
  @Test
  void whatIsDroppedIsRemovedLater() throws IOException {
    final LeftFile file = write(() -> {});
    file.close();
    file.close();
    assertThat(watched.isOpen()).isTrue();
    assertThat(folder.bytes()).isEqualTo(file.bytes());
    assertThat(folder.hasDropped()).isTrue();
    folder.free();
    assertThat(watched.isOpen()).isFalse();
    assertThat(folder.hasDropped()).isFalse();
    assertThat(folder.bytes()).isZero();
    assertThat(file.bytes(0, 0)).isNegative();
  }
}
