package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Device;
import io.zerohop.device.TestClock;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.NodeStats;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.shuffle.transport.contract.ServedBlocks;
import java.io.IOException;
import java.time.Duration;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import org.apache.spark.storage.BlockManagerId;

/**
 * Executors that take one another to be on other nodes, each behind a proxy and by a clock of its
 * own. The first one owns the blocks of shuffle 1. Owns all of them.
 */
final class SentNodes implements AutoCloseable {
  static final int SHUFFLE = 1;
  static final int MAPS = 4;
  static final int PARTITIONS = 5;
  static final int MOST = 1 << 20;

  private final List<Member> members = new CopyOnWriteArrayList<>();
  private final java.nio.file.Path folder;
  private final Map<String, String> settings;
  private final ServedBlocks staged = new ServedBlocks();
  private List<Block> written = List.of();

  /** One executor. */
  final class Member {
    private final String name;
    private final TestClock clock = TestClock.running();
    private final BlockPort port;
    private final PortProxy proxy;
    private final AtomicInteger looks = new AtomicInteger();
    private final ShuffleNode node;

    private Member(final String name, final UnaryOperator<ShuffleNode.Setup> more, final Device gpu)
        throws IOException {
      this.name = name;
      port = new BlockPort(name, settings);
      proxy = new PortProxy(port.port());
      port.behind(proxy.port());
      members.add(this);
      node =
          ShuffleNode.start(
              more.apply(
                  TestNodes.config(folder.resolve("s"), name)
                      .set("node.id", "node-" + name)
                      .set("request.timeout", Duration.ofSeconds(20))
                      .clock(clock)
                      .carrier(port.carrier(this::lookUp))),
              gpu);
    }

    /** Asked of the driver, so to speak. */
    private List<BlockManagerId> lookUp() {
      looks.incrementAndGet();
      return members.stream().map(member -> member.port.address()).toList();
    }

    /** How often it has asked where others are: also after each that it could not connect to. */
    int looks() {
      return looks.get();
    }

    String name() {
      return name;
    }

    ShuffleNode node() {
      return node;
    }

    NodeStats stats() {
      return node.stats();
    }

    BlockPort port() {
      return port;
    }

    PortProxy proxy() {
      return proxy;
    }

    TestClock clock() {
      return clock;
    }

    /** Blocks that came, by their ways, each of which was right. */
    Map<BlockPath, Integer> read() {
      return read(source());
    }

    Map<BlockPath, Integer> read(final BlockSource source) {
      return TestNodes.fetchAndCheck(node, staged, 1, MOST, source);
    }

    Fetch fetch(final BlockSource source) {
      return node.fetch(List.of(source), staged, TestNodes.quiet(), () -> false);
    }

    /** The same where the fetch may fail: no ways then, and what came before was right, too. */
    Map<BlockPath, Integer> readUntilItFails() {
      final Map<BlockPath, Integer> paths = new EnumMap<>(BlockPath.class);
      try (Fetch fetcher = fetch(source())) {
        while (fetcher.next()) {
          check(fetcher.block());
          paths.merge(fetcher.block().path(), 1, Integer::sum);
        }
      } catch (final BlockFetchException e) {
        assertThat(e.category()).isEqualTo(ZerohopException.Category.FETCH_FAILED);
        paths.clear();
      }
      return paths;
    }

    /** Nothing is received here or sent from here any more, and nobody reads. */
    void awaitIdle() {
      TestNodes.eventually(
          name + " receives and sends nothing",
          () ->
              stats().receiveBuffers().slabs() == 0
                  && stats().receiveBuffers().bytes() == 0
                  && stats().receiveBuffers().sendingBytes() == 0
                  && stats().leases().open() == 0);
    }
  }

  SentNodes(final java.nio.file.Path folder, final Map<String, String> settings) {
    this.folder = folder;
    this.settings = settings;
  }

  Member start(final String name) throws IOException {
    return start(name, config -> config);
  }

  Member start(final String name, final UnaryOperator<ShuffleNode.Setup> more) throws IOException {
    return start(name, more, null);
  }

  /**
   * Starts an executor.
   *
   * @param more sets what is not as usual
   * @param gpu owned by it; null for none
   */
  Member start(final String name, final UnaryOperator<ShuffleNode.Setup> more, final Device gpu)
      throws IOException {
    final Member made = new Member(name, more, gpu);
    staged.serve(name, made.node);
    return made;
  }

  private Member owner() {
    return members.get(0);
  }

  /** The owner writes its blocks. */
  void write() {
    for (int map = 0; map < MAPS; map++) {
      TestBlocks.write(owner().node, SHUFFLE, map, 1, PARTITIONS, MOST);
    }
    written =
        TestBlocks.source(
                owner().name, owner().node.location(), SHUFFLE, 0, MAPS, 1, PARTITIONS, MOST)
            .blocks();
  }

  /** All blocks that the owner wrote. */
  BlockSource source() {
    return source(written);
  }

  /** Blocks of the owner, as Spark tells where they are. */
  BlockSource source(final List<Block> blocks) {
    return new BlockSource(owner().name, owner().node.location(), owner().port.address(), blocks);
  }

  static void check(final FetchedBlock fetched) {
    assertThat(TestNodes.read(fetched))
        .as("%s", fetched.block())
        .isEqualTo(
            TestBlocks.block(
                SHUFFLE, fetched.block().mapId(), 1, fetched.block().partition(), MOST));
  }

  /** An executor of two ends without a word, and what it has sent ends with it. */
  void kill(final Member dead) throws IOException {
    endStaging(dead);
    dead.proxy.refuse();
    for (final Member other : members) {
      if (other != dead) {
        other.proxy.closeAll();
      }
    }
  }

  /** The host of one of two is gone: nobody hears of the other any more, nor that it is so. */
  void silence(final Member dead) {
    endStaging(dead);
    members.forEach(member -> member.proxy.pause(true));
  }

  /** Nobody serves its blocks any more. */
  private void endStaging(final Member dead) {
    staged.leave(dead.name);
  }

  /** Nothing is held for anybody, and everything ends. */
  @Override
  @SuppressWarnings("try") // A flight is there to be closed.
  public void close() throws IOException {
    for (final Member member : members) {
      member.proxy.pause(false);
      member.node.unregisterShuffle(SHUFFLE);
    }
    for (int i = members.size() - 1; i >= 0; i--) { // Readers first: they hold what is the owner's.
      final Member member = members.get(i);
      try (TestClock.Flight tenSeconds = member.clock.fly()) { // What a reader left stays so long.
        member.awaitIdle();
        TestNodes.assertNothingHeld(member.node);
      }
      member.node.close();
    }
    staged.assertAllReleased();
    staged.close();
    for (final Member member : members) {
      member.proxy.close();
      member.port.close();
    }
  }
}
