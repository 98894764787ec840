package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.zerohop.device.Leaks;
import io.zerohop.device.TestClock;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.keeper.Keeper;
import io.zerohop.shuffle.keeper.KeeperStats;
import io.zerohop.shuffle.keeper.KeptTransport;
import io.zerohop.shuffle.transport.FakeStaging;
import io.zerohop.shuffle.transport.samenode.LeftFolder;
import io.zerohop.shuffle.transport.ucx.LocalChannels;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A keeper that writes to files what executors have left that have ended. */
class KeeperFilesTest {
  private static final int MAPS = 10;
  private static final int FEW_MAPS = 3;
  private static final int READERS = 4;
  private static final Duration LONG = Duration.ofHours(1);

  /** What nobody reads goes to files at once. */
  private static final Keeper.Limits AT_ONCE =
      new Keeper.Limits(Long.MAX_VALUE, LONG, Duration.ZERO, LONG);

  /** What nobody has read for so long goes to files. */
  private static final Duration UNREAD = Duration.ofMinutes(1);

  /** How long directories are left alone after a failure. */
  private static final Duration PAUSE = Duration.ofSeconds(10);

  @TempDir private java.nio.file.Path temp;
  private java.nio.file.Path base;
  private java.nio.file.Path dir;
  private final Leaks leaks = new Leaks();
  private final LocalChannels channels = new LocalChannels();
  private final Set<Integer> useless = ConcurrentHashMap.newKeySet();
  private final Map<String, Set<Integer>> told = new HashMap<>();
  private ShuffleNode reader;
  private KeptTransport transport;
  private final TestClock filesClock = TestClock.running();
  private final TestClock clock = TestClock.running();
  private LeftFolder files;

  /** Whether others answer where the owners did, with blocks of their own. */
  private volatile boolean arePortsTaken;

  private Keeper keeper;
  private volatile boolean ending;
  private Thread keeping;

  @BeforeEach
  void start() throws IOException {
    base = temp.resolve("s");
    dir = Files.createDirectory(temp.resolve("files"));
    reader = TestNodes.start(base, "reader");
    final FakeStaging others =
        new FakeStaging(block -> new byte[] {42}) {
          @Override
          public boolean answers(final BlockSource source, final Duration limit) {
            return arePortsTaken;
          }
        };
    transport =
        new KeptTransport(
            others, source -> false, () -> channels.open(null), source -> {}, LONG, Clock.system());
  }

  @AfterEach
  void noLeaks() throws Exception {
    ending = true;
    keeping.join();
    keeper.close();
    assertThat(files.bytes()).isZero();
    assertThat(names(dir)).isEmpty();
    transport.close();
    TestNodes.eventually(
        "nothing is mapped",
        () -> {
          reader.unregisterShuffle(1);
          return Holdings.of(reader).mappedSegments() == 0;
        });
    reader.close();
    leaks.check();
  }

  private static List<String> names(final java.nio.file.Path folder) throws IOException {
    final List<String> names = new ArrayList<>();
    try (DirectoryStream<java.nio.file.Path> found = Files.newDirectoryStream(folder)) {
      found.forEach(one -> names.add(one.getFileName().toString()));
    }
    return names;
  }

  private void startKeeper(
      final Keeper.Limits limits, final long most, final java.nio.file.Path... dirs) {
    files = LeftFolder.open(List.of(dirs), most, Long.MAX_VALUE, filesClock);
    keeper =
        Keeper.start(
            ShuffleNode.socketFolder(base, "app-test", TestNodes.SECRET),
            TestNodes.SECRET,
            limits,
            this::report,
            channels::open,
            files,
            null,
            "1.2",
            () -> Long.MAX_VALUE,
            clock);
    keeping =
        new Thread(
            () -> {
              while (!ending && keeper.round()) {
                Thread.onSpinWait();
              }
            });
    keeping.start();
  }

  private synchronized Set<Integer> report(
      final String executorId, final Map<Integer, Set<Long>> outputs) {
    if (outputs != null) {
      told.put(executorId, Set.copyOf(outputs.keySet()));
    }
    final Set<Integer> needed = new HashSet<>(told.getOrDefault(executorId, Set.of()));
    needed.removeAll(useless);
    return needed;
  }

  /**
   * It counts on nothing of a shuffle any more, long after the end of all that had a part of it.
   */
  private void driverDrops(final int shuffleId) {
    clock.advance(Keeper.Driver.PATIENCE);
    useless.add(shuffleId);
  }

  private KeeperStats stats() {
    return reader.keeperStats(TestNodes.SECRET);
  }

  /** A source as it is published, once the keeper holds all of it. */
  private static BlockSource published(final NodeProcess owner, final int shuffleId)
      throws IOException {
    return published(owner, shuffleId, MAPS);
  }

  private static BlockSource published(final NodeProcess owner, final int shuffleId, final int maps)
      throws IOException {
    owner.ask("write", shuffleId, maps);
    TestNodes.eventually("all is kept", () -> isKept(owner, shuffleId, maps));
    final int port = Integer.parseInt(owner.ask("keeperPort", shuffleId));
    final BlockSource near = owner.source(shuffleId, maps);
    return new BlockSource(
        near.executorId(),
        near.knownLocation().withKeeper(port),
        "host",
        near.address(),
        near.blocks(),
        true);
  }

  private static boolean isKept(final NodeProcess owner, final int shuffleId, final int maps) {
    try {
      return owner.ask("kept", shuffleId, maps).equals("" + maps);
    } catch (final IOException e) {
      throw new AssertionError(e);
    }
  }

  private Map<BlockPath, Integer> readAll(final ShuffleNode node, final BlockSource source) {
    return TestNodes.fetchAndCheck(node, transport, NodeProcess.BATCHES, NodeProcess.MOST, source);
  }

  private void assertLost(final BlockSource source) {
    assertThatThrownBy(() -> readAll(reader, source)).isInstanceOf(BlockFetchException.class);
  }

  private void awaitFiles(final int outputs) {
    TestNodes.eventually(
        outputs + " outputs are in files and nowhere else",
        () -> stats().fileOutputs() == outputs && stats().leftBytes() == 0);
  }

  @Test
  void whatNobodyReadsIsReadFromFilesUntilItIsDropped() throws Exception {
    startKeeper(AT_ONCE, 1 << 30, dir);
    try (NodeProcess owner = new NodeProcess(base, "1");
        ShuffleNode elsewhere =
            ShuffleNode.start(
                TestNodes.config(temp.resolve("other"), "far").set("node.id", "other"))) {
      final BlockSource one = published(owner, 1);
      final BlockSource two = published(owner, 2);
      owner.kill();
      awaitFiles(2 * MAPS);
      arePortsTaken = true;
      assertThat(readAll(reader, one)).containsOnlyKeys(BlockPath.STAGED);
      assertThat(readAll(elsewhere, two)).containsOnlyKeys(BlockPath.STAGED);
      final KeeperStats full = stats();
      assertThat(full.heldBytes()).isZero();
      assertThat(full.leftOutputs()).isEqualTo(2 * MAPS);
      assertThat(full.fileLimitBytes()).isEqualTo(1 << 30);
      assertThat(full.fileBytes()).isPositive().isEqualTo(files.bytes());
      assertThat(names(dir)).isEmpty();
      driverDrops(1);
      awaitFiles(MAPS);
      assertLost(one);
      assertThat(readAll(reader, two)).containsOnlyKeys(BlockPath.STAGED);
      driverDrops(2);
      TestNodes.eventually("all is dropped", () -> files.bytes() == 0);
    }
  }

  @Test
  void atTheLimitWhatWasLeftMakesRoom() throws Exception {
    startKeeper(new Keeper.Limits(3L << 20, LONG, LONG, LONG), 1 << 30, dir);
    try (NodeProcess one = new NodeProcess(base, "1");
        NodeProcess two = new NodeProcess(base, "2")) {
      final BlockSource first = published(one, 1);
      one.kill();
      final BlockSource second = published(two, 2);
      two.kill();
      assertThat(readAll(reader, first)).containsOnlyKeys(BlockPath.STAGED);
      assertThat(readAll(reader, second)).isNotEmpty();
      TestNodes.eventually("it is counted", () -> stats().fileOutputs() >= MAPS);
    }
  }

  @Test
  @SuppressWarnings("try") // A flight is there to be closed.
  void memoryStaysForThoseWhoReadInIt() throws Exception {
    startKeeper(new Keeper.Limits(Long.MAX_VALUE, LONG, UNREAD, LONG), 1 << 30, dir);
    try (NodeProcess owner = new NodeProcess(base, "1")) {
      final BlockSource source = published(owner, 1);
      owner.kill();
      TestNodes.eventually("it is left", () -> stats().leftBytes() > 0);
      try (Fetch fetch = reader.fetch(List.of(source), transport, TestNodes.quiet(), () -> false)) {
        assertThat(fetch.next()).isTrue();
        assertThat(fetch.block().path()).isEqualTo(BlockPath.PEER);
        try (TestClock.Flight unread = clock.fly()) {
          TestNodes.eventually("it is in files", () -> stats().fileOutputs() == MAPS);
        }
        assertThat(stats().leftBytes()).isPositive();
        TestNodes.readToTheEndOrClose(fetch);
      }
      awaitFiles(MAPS);
    }
  }

  @Test
  void damageIsFound() throws Exception {
    startKeeper(AT_ONCE, 1 << 30, dir);
    try (NodeProcess owner = new NodeProcess(base, "1")) {
      final BlockSource one = published(owner, 1);
      final BlockSource two = published(owner, 2);
      owner.kill();
      awaitFiles(2 * MAPS);
      final List<java.nio.file.Path> open = open(dir);
      assertThat(open).hasSize(2);
      for (final java.nio.file.Path file : open) {
        assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
            .isEqualTo("rw-------");
      }
      flip(open.get(0), 3);
      flip(open.get(1), Files.size(open.get(1)) - 1);
      assertLost(one);
      assertLost(two);
    }
  }

  /** The files of this process that have been unlinked there. */
  private static List<java.nio.file.Path> open(final java.nio.file.Path folder) throws IOException {
    final List<java.nio.file.Path> files = new ArrayList<>();
    try (DirectoryStream<java.nio.file.Path> all =
        Files.newDirectoryStream(java.nio.file.Path.of("/proc/self/fd"))) {
      for (final java.nio.file.Path fd : all) {
        if (Files.isSymbolicLink(fd)
            && Files.readSymbolicLink(fd).toString().startsWith(folder.toString())) {
          files.add(fd);
        }
      }
    }
    return files;
  }

  private static void flip(final java.nio.file.Path file, final long at) throws IOException {
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      final ByteBuffer one = ByteBuffer.allocate(1);
      channel.read(one, at);
      one.put(0, (byte) ~one.get(0));
      channel.write(one.rewind(), at);
    }
  }

  /** As on a disk with a bad sector: the driver hears before other readers fail. */
  @Test
  void whatIsInAFileThatCannotBeReadIsGivenUp() throws Exception {
    startKeeper(AT_ONCE, 1 << 30, dir);
    try (NodeProcess one = new NodeProcess(base, "1");
        NodeProcess two = new NodeProcess(base, "2")) {
      final BlockSource first = published(one, 1);
      final BlockSource second = published(two, 2);
      final BlockSource third = published(two, 3);
      one.kill();
      awaitFiles(MAPS);
      for (final java.nio.file.Path file : open(dir)) {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
          channel.truncate(0);
        }
      }
      two.kill();
      awaitFiles(3 * MAPS);
      assertLost(first);
      TestNodes.eventually("the driver knows", () -> Set.of().equals(left("1")));
      TestNodes.eventually("nothing is left of it", () -> stats().leftOutputs() == 2 * MAPS);
      assertThat(stats().droppedOutputs()).isEqualTo(MAPS);
      TestNodes.eventually("the driver knows the others", () -> Set.of(2, 3).equals(left("2")));
      assertThat(readAll(reader, second)).containsOnlyKeys(BlockPath.STAGED);
      assertThat(readAll(reader, third)).containsOnlyKeys(BlockPath.STAGED);
    }
  }

  /** What the driver was told last; null if nothing was. */
  private synchronized Set<Integer> left(final String executorId) {
    return told.get(executorId);
  }

  @Test
  void whatIsDroppedWhileItIsReadFails() throws Exception {
    startKeeper(AT_ONCE, 1 << 30, dir);
    try (NodeProcess owner = new NodeProcess(base, "1")) {
      final BlockSource source = published(owner, 1);
      owner.kill();
      awaitFiles(MAPS);
      readAll(reader, source);
      driverDrops(1);
      assertThatThrownBy(
              () -> {
                while (true) {
                  readAll(reader, source);
                }
              })
          .isInstanceOf(BlockFetchException.class);
      TestNodes.eventually("it is removed", () -> files.bytes() == 0);
    }
  }

  @Test
  void withoutADirectoryThatTakesItAllStaysInMemoryUntilTheNextOneDoes() throws Exception {
    final java.nio.file.Path lost = Files.createDirectory(temp.resolve("lost"));
    startKeeper(AT_ONCE, 1 << 30, lost, dir);
    Files.delete(lost); // One that is missing at the start is not the first to be tried.
    try (NodeProcess owner = new NodeProcess(base, "1")) {
      final BlockSource source = published(owner, 1);
      owner.kill();
      TestNodes.eventually("it was tried", () -> !files.isUsable());
      assertThat(readAll(reader, source)).containsOnlyKeys(BlockPath.PEER);
      filesClock.advance(PAUSE);
      awaitFiles(MAPS);
    }
  }

  @Test
  void beyondItsLimitNothingIsWritten() throws Exception {
    startKeeper(AT_ONCE, 20_000, dir);
    try (NodeProcess owner = new NodeProcess(base, "1")) {
      final BlockSource source = published(owner, 1);
      owner.kill();
      TestNodes.eventually("it was tried", () -> !files.isUsable());
      TestNodes.eventually("nothing is there", () -> files.bytes() == 0);
      assertThat(readAll(reader, source)).containsOnlyKeys(BlockPath.PEER);
    }
  }

  @Test
  void onAFullDiskAllStaysInMemory() throws Exception {
    final java.nio.file.Path small = Files.createDirectory(temp.resolve("small"));
    assumeTrue(run("mount", "-t", "tmpfs", "-o", "size=64k", "none", small.toString()));
    try {
      final long free = Files.getFileStore(small).getUsableSpace();
      startKeeper(AT_ONCE, 1 << 30, small);
      try (NodeProcess owner = new NodeProcess(base, "1")) {
        final BlockSource source = published(owner, 1);
        owner.kill();
        TestNodes.eventually("it was tried", () -> !files.isUsable());
        TestNodes.eventually("nothing is there", () -> files.bytes() == 0);
        TestNodes.eventually(
            "its space is free",
            () -> {
              try {
                return Files.getFileStore(small).getUsableSpace() == free;
              } catch (final IOException e) {
                throw new AssertionError(e);
              }
            });
        assertThat(readAll(reader, source)).containsOnlyKeys(BlockPath.PEER);
      }
    } finally {
      assertThat(run("umount", "-l", small.toString())).isTrue();
    }
  }

  @Test
  void whatDoesNotFitKeepsNothingElseInMemory() throws Exception {
    startKeeper(AT_ONCE, 200_000, dir); // Less than ten map outputs have, and more than three.
    try (NodeProcess large = new NodeProcess(base, "1");
        NodeProcess small = new NodeProcess(base, "2")) {
      final BlockSource first = published(large, 1);
      large.kill();
      TestNodes.eventually("it was tried", () -> !files.isUsable());
      final BlockSource second = published(small, 2, FEW_MAPS);
      small.kill();
      TestNodes.eventually("the other is left", () -> stats().leftOutputs() == MAPS + FEW_MAPS);
      filesClock.advance(PAUSE);
      TestNodes.eventually("the other is in a file", () -> stats().fileOutputs() == FEW_MAPS);
      assertThat(readAll(reader, first)).containsOnlyKeys(BlockPath.PEER);
      assertThat(readAll(reader, second)).containsOnlyKeys(BlockPath.STAGED);
    }
  }

  @Test
  void readersLoseNothingWhileItMovesToAFile() throws Exception {
    startKeeper(AT_ONCE, 1 << 30, dir);
    try (NodeProcess owner = new NodeProcess(base, "1");
        ShuffleNode elsewhere =
            ShuffleNode.start(
                TestNodes.config(temp.resolve("other"), "far").set("node.id", "other"))) {
      final BlockSource source = published(owner, 1);
      final ExecutorService threads = Executors.newFixedThreadPool(READERS);
      try {
        final List<Future<?>> reads = new ArrayList<>();
        owner.kill();
        for (int i = 0; i < READERS; i++) {
          reads.add(
              threads.submit(
                  () -> {
                    do {
                      readAll(elsewhere, source);
                    } while (stats().fileOutputs() < MAPS);
                    return readAll(elsewhere, source);
                  }));
        }
        for (final Future<?> read : reads) {
          read.get(LONG.toSeconds(), TimeUnit.SECONDS);
        }
      } finally {
        threads.shutdownNow();
      }
    }
  }

  @Test
  void aTenthOfAFileSystemIsLeftToOthers() throws Exception {
    final java.nio.file.Path small = Files.createDirectory(temp.resolve("nearly"));
    assumeTrue(run("mount", "-t", "tmpfs", "-o", "size=64m", "none", small.toString()));
    try {
      final java.nio.file.Path others = Files.write(small.resolve("others"), new byte[60 << 20]);
      startKeeper(AT_ONCE, 1 << 30, small);
      try (NodeProcess owner = new NodeProcess(base, "1")) {
        final BlockSource source = published(owner, 1);
        owner.kill();
        TestNodes.eventually("it was tried", () -> !files.isUsable());
        TestNodes.eventually("nothing is there", () -> files.bytes() == 0);
        Files.delete(others);
        filesClock.advance(PAUSE);
        awaitFiles(MAPS);
        assertThat(files.bytes()).isLessThan(4 << 20); // The rest of the file system had room.
        assertThat(readAll(reader, source)).containsOnlyKeys(BlockPath.STAGED);
      }
    } finally {
      assertThat(run("umount", "-l", small.toString())).isTrue();
    }
  }

  private static boolean run(final String... command) throws Exception {
    return new ProcessBuilder(command).start().waitFor() == 0;
  }

  @Test
  void whatAnEarlierKeeperHasLeftIsRemoved() throws Exception {
    final java.nio.file.Path old = dir.resolve("zerohop-kept-0123456789abcdef");
    Files.createDirectory(
        old, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    Files.writeString(old.resolve("blocks"), "bytes");
    final java.nio.file.Path open = Files.createDirectory(dir.resolve("zerohop-kept-open"));
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
    final java.nio.file.Path other = Files.createDirectory(dir.resolve("blockmgr-1"));
    startKeeper(AT_ONCE, 1 << 30, dir);
    assertThat(names(dir)).containsExactlyInAnyOrder("zerohop-kept-open", "blockmgr-1");
    Files.delete(open);
    Files.delete(other);
  }
}
