package io.zerohop.spark.staged;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.WaitException;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.transport.Transport;
import io.zerohop.spark.LocalSpark;
import io.zerohop.spark.staged.ZerohopBlockResolver.MemoryBlockBuffer;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.storage.ShuffleBlockBatchId;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** What goes wrong at an owner's service, or on the way from it, while blocks are sent. */
@Timeout(120)
class BlockTransferFaultTest {
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
  private Staging staging;
  private BlockSource source;
  private final AtomicInteger asked = new AtomicInteger();
  private final Map<Block, String> outcomes = new ConcurrentHashMap<>();

  @BeforeEach
  void start() {
    owner =
        ShuffleNode.start(
            TestNodes.config(folder.resolve("s"), OwnerService.EXECUTOR)
                .set("paths", EnumSet.of(io.zerohop.shuffle.block.BlockPath.STAGED)));
    staging = new Staging(owner, LARGE_BYTES);
    TestBlocks.write(owner, SHUFFLE, 0, 1, PARTITIONS, MOST);
    source =
        new BlockSource(
            OwnerService.EXECUTOR,
            owner.location(),
            SERVICE.address(),
            TestBlocks.source(
                    OwnerService.EXECUTOR, owner.location(), SHUFFLE, 0, 1, 1, PARTITIONS, MOST)
                .blocks());
  }

  @AfterEach
  void nothingIsHeld() {
    staging.assertNothingHeld();
    SERVICE.serveNothing();
    owner.unregisterShuffle(SHUFFLE);
    TestNodes.assertNothingHeld(owner);
    owner.close();
  }

  /** Serves another buffer in place of the owner's for one block. */
  private void replace(final Block block, final Replacement replacement) {
    SERVICE.serve(
        id ->
            id.name().equals(block.toString())
                ? replacement.of(asked.getAndIncrement(), staging.served(id))
                : staging.served(id));
  }

  private interface Replacement {
    ManagedBuffer of(int before, ManagedBuffer buffer);
  }

  /** The first block that comes by a request of its own, or the first that does not. */
  private Block block(final boolean large) {
    return source.blocks().stream()
        .filter(block -> block.bytes() > LARGE_BYTES == large)
        .findFirst()
        .orElseThrow();
  }

  /** Fetches all blocks, reads those that arrive, and waits for the rest to fail. */
  private void fetch() {
    staging
        .transport()
        .fetch(
            source,
            source.blocks(),
            new Transport.Sink() {
              @Override
              public void arrived(final Block block, final Transport.Payload payload) {
                outcomes.put(block, readAndRelease(block, payload));
              }

              @Override
              public void failed(final Block block, final Throwable cause) {
                outcomes.put(block, "failed: " + cause);
              }
            });
    TestNodes.eventually("all blocks", () -> outcomes.size() == source.blocks().size());
  }

  private static String readAndRelease(final Block block, final Transport.Payload payload) {
    try (InputStream in = payload.open(() -> false)) {
      assertThat(in.readAllBytes())
          .isEqualTo(TestBlocks.block(SHUFFLE, block.mapId(), 1, block.partition(), MOST));
      return "arrived";
    } catch (final IOException | AssertionError e) {
      return "is wrong: " + e;
    } finally {
      payload.release();
    }
  }

  private Map<Block, String> notArrived() {
    final Map<Block, String> others = new HashMap<>(outcomes);
    others.values().removeIf(outcome -> outcome.equals("arrived"));
    return others;
  }

  @Test
  void aLargeBlockThatCannotBeReadFailsAlone() {
    final Block gone = block(true);
    replace(
        gone,
        (before, buffer) ->
            new MemoryBlockBuffer(
                owner,
                new ShuffleBlockBatchId(SHUFFLE, 99, 0, 1),
                () -> {
                  throw new IllegalStateException("it has left");
                }));
    fetch();
    assertThat(notArrived()).containsOnlyKeys(gone);
    assertThat(outcomes.get(gone)).contains("it has left");
    assertThat(asked).as("no connection was lost").hasValue(1);
  }

  @Test
  void whatALostConnectionHadToBringComesByAnother() {
    replace(block(true), (before, buffer) -> before == 0 ? new BreakingBuffer(() -> {}) : buffer);
    fetch();
    assertThat(notArrived()).isEmpty();
    assertThat(asked).hasValue(2);
  }

  @Test
  void aBlockThatLosesEachConnectionFails() {
    final Block fatal = block(true);
    replace(fatal, (before, buffer) -> new BreakingBuffer(() -> {}));
    fetch();
    assertThat(notArrived()).containsKey(fatal);
    assertThat(asked).hasValueGreaterThan(1);
  }

  @Test
  void aReaderThatIsCancelledDoesNotWaitForASilentOwner() {
    final CountDownLatch silence = new CountDownLatch(1);
    SERVICE.serve(
        id -> {
          asked.incrementAndGet();
          await(silence);
          return staging.served(id);
        });
    try (Fetch fetcher =
        owner.fetch(
            List.of(source), staging.transport(), TestNodes.quiet(), () -> asked.get() > 0)) {
      assertThatThrownBy(fetcher::next).isInstanceOf(WaitException.class);
    } finally {
      silence.countDown(); // What comes now is too late, and released.
    }
  }

  private static void await(final CountDownLatch latch) {
    try {
      assertThat(latch.await(60, TimeUnit.SECONDS)).isTrue();
    } catch (final InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
