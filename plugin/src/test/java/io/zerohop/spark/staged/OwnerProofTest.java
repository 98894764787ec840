package io.zerohop.spark.staged;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.transport.Transport;
import io.zerohop.spark.LocalSpark;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.ShuffleBlockId;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import scala.Option;

/**
 * Executors that have the port of one that has ended, and blocks of the same numbers: Spark's
 * service itself sends those to anybody.
 */
@Timeout(120)
class OwnerProofTest {
  private static final int SHUFFLE = 1;
  private static final int PARTITIONS = 20;
  private static final int MOST = 2_000;

  /** Larger blocks come by way of files, each by a request of its own. */
  private static final long LARGE_BYTES = 1_000;

  @Order(1)
  @RegisterExtension
  static final LocalSpark SPARK = new LocalSpark();

  @Order(2)
  @RegisterExtension
  static final OwnerService SERVICE = new OwnerService();

  @TempDir private Path folder;
  private ShuffleNode owner;
  private ShuffleNode another;
  private Staging ofOwner;
  private Staging ofAnother;
  private BlockSource source;
  private final Map<Block, String> outcomes = new ConcurrentHashMap<>();

  @BeforeEach
  void start() {
    owner = node("owner");
    another = node("another");
    ofOwner = new Staging(owner, LARGE_BYTES);
    ofAnother = new Staging(another, LARGE_BYTES);
    source =
        new BlockSource(
            OwnerService.EXECUTOR,
            owner.location(),
            SERVICE.address(),
            TestBlocks.source(
                    OwnerService.EXECUTOR, owner.location(), SHUFFLE, 0, 1, 1, PARTITIONS, MOST)
                .blocks());
  }

  private ShuffleNode node(final String name) {
    final ShuffleNode node =
        ShuffleNode.start(
            TestNodes.config(folder.resolve(name), name)
                .set("paths", EnumSet.of(BlockPath.STAGED)));
    TestBlocks.write(node, SHUFFLE, 0, 1, PARTITIONS, MOST);
    return node;
  }

  @AfterEach
  void nothingIsHeld() {
    ofOwner.assertNothingHeld();
    SERVICE.serveNothing();
    for (final ShuffleNode node : new ShuffleNode[] {owner, another}) {
      node.unregisterShuffle(SHUFFLE);
      TestNodes.assertNothingHeld(node);
      node.close();
    }
  }

  /** Fetches all blocks, and waits until each has arrived or failed. */
  private void fetch() {
    outcomes.clear();
    ofOwner
        .transport()
        .fetch(
            source,
            source.blocks(),
            new Transport.Sink() {
              @Override
              public void arrived(final Block block, final Transport.Payload payload) {
                payload.release();
                outcomes.put(block, "arrived");
              }

              @Override
              public void failed(final Block block, final Throwable cause) {
                outcomes.put(block, "failed: " + cause);
              }
            });
    TestNodes.eventually("all blocks", () -> outcomes.size() == source.blocks().size());
  }

  private void assertAllFailed() {
    assertThat(outcomes.values()).allMatch(outcome -> outcome.startsWith("failed"));
  }

  @Test
  void theOwnerItselfGivesItsBlocks() {
    SERVICE.serve(ofOwner::served);
    fetch();
    assertThat(outcomes.values()).containsOnly("arrived");
  }

  @Test
  void anotherExecutorWithZerohopGivesNone() {
    SERVICE.serve(ofAnother::served);
    fetch();
    assertAllFailed();
    assertThat(outcomes.values()).allMatch(why -> why.contains("another one has its port"));
  }

  @Test
  void anExecutorWithSparksShuffleGivesNone() {
    final Function<BlockId, ManagedBuffer> sorted =
        id ->
            id instanceof ShuffleBlockId block && OwnerProof.isOne(block)
                ? SparkEnv.get()
                    .shuffleManager()
                    .shuffleBlockResolver()
                    .getBlockData(id, Option.empty())
                : ofAnother.served(id);
    SERVICE.serve(sorted);
    fetch();
    assertAllFailed();
  }

  /** Spark's client connects again by itself. */
  @Test
  void oneThatHasThePortWhenAConnectionIsMadeAnewGivesNone() {
    final AtomicBoolean hasEnded = new AtomicBoolean();
    SERVICE.serve(
        id -> {
          if (hasEnded.get()) {
            return ofAnother.served(id);
          }
          final boolean isProof = id instanceof ShuffleBlockId block && OwnerProof.isOne(block);
          return isProof ? ofOwner.served(id) : new BreakingBuffer(() -> hasEnded.set(true));
        });
    fetch();
    assertThat(hasEnded).isTrue();
    assertAllFailed();
  }

  @Test
  void eachLifeHasItsOwn() {
    final Set<String> names = new HashSet<>();
    final long[] lives = {
      0, 1, 2, 3, 4, -1, -2, -3, -4, -5, Long.MAX_VALUE, Long.MIN_VALUE, 1L << 62, 3L << 62
    };
    for (final long life : lives) {
      final ShuffleBlockId proof = OwnerProof.of(SHUFFLE, life);
      assertThat(names.add(proof.name())).isTrue();
      assertThat(OwnerProof.isOne(proof)).isTrue();
      assertThat(BlockId.apply(proof.name())).as("as Spark's service reads it").isEqualTo(proof);
    }
    assertThat(OwnerProof.isOne(new ShuffleBlockId(SHUFFLE, 1L << 50, 0))).isFalse();
  }
}
