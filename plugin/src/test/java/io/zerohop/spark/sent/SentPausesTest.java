package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.DeviceOnlyGpu;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.BlockPath;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** Readers and networks that pause: what is lost by it, and for whom. */
@Timeout(60)
@ExtendWith(QuietNetwork.class)
class SentPausesTest {
  /** Of the request's limit, 20 s by the reader's clock. */
  private static final Duration LESS_THAN_HALF = Duration.ofSeconds(7);

  private static final Duration STEP = Duration.ofMillis(100);

  @TempDir private java.nio.file.Path folder;
  private final CountDownLatch goesOn = new CountDownLatch(1);
  private SentNodes nodes;

  @BeforeEach
  void start() {
    nodes = new SentNodes(folder, Map.of());
  }

  @AfterEach
  void nothingIsHeld() throws IOException {
    goesOn.countDown();
    nodes.close();
  }

  @Test
  void aPauseOfLessThanHalfOfTheLimitLosesNothing() throws Exception {
    final SentNodes.Member owner = nodes.start("owner");
    final SentNodes.Member reader = nodes.start("reader");
    nodes.write();
    final AtomicInteger greetings = new AtomicInteger();
    owner.proxy().hear(counts(UploadId.QUESTION, 0, greetings));
    final AtomicBoolean paused = new AtomicBoolean();
    TransferStep.SENDING.await(
        owner,
        reader,
        () -> {
          owner.proxy().pause(true);
          reader.proxy().pause(true);
          paused.set(true);
        });
    final CompletableFuture<Map<BlockPath, Integer>> reading =
        CompletableFuture.supplyAsync(reader::read);
    TestNodes.eventually("the network pauses", paused::get);
    final long begin = reader.clock().nanos();
    while (reader.clock().since(begin) < LESS_THAN_HALF.minus(STEP).toNanos()) {
      reader.clock().advance(STEP);
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(3)); // For chores, which look each step.
    }
    owner.proxy().pause(false);
    reader.proxy().pause(false);
    assertThat(reading.get(30, TimeUnit.SECONDS)).containsOnlyKeys(BlockPath.SENT);
    assertThat(greetings).as("the owner was not taken for lost").hasValue(1);
  }

  private static PortProxy.Ear counts(final int type, final int number, final AtomicInteger seen) {
    return new PortProxy.Ear() {
      @Override
      public void begins(final UploadId id) {
        if (id.kind() == UploadId.WORD && id.type() == type && id.place() == number) {
          seen.incrementAndGet();
        }
      }
    };
  }

  /** Silence is taken for death, so whatever waits for a GPU must not hold up answers. */
  @Test
  void anOwnerWhoseGpuIsBusyAnswersOthers() throws Exception {
    final DeviceOnlyGpu gpu = new DeviceOnlyGpu();
    final SentNodes.Member owner = nodes.start("owner", config -> config, gpu);
    final SentNodes.Member first =
        nodes.start("first", config -> config.set("fetch.window.blocks", 1));
    final SentNodes.Member second = nodes.start("second");
    nodes.write();
    gpu.hold();
    final CompletableFuture<Map<BlockPath, Integer>> reading =
        CompletableFuture.supplyAsync(first::read);
    TestNodes.eventually("windows are being sent", () -> owner.stats().leases().open() >= 8);
    final AtomicInteger answers = new AtomicInteger();
    second.proxy().hear(counts(UploadId.ANSWER, 0, answers));
    final CompletableFuture<Map<BlockPath, Integer>> late =
        CompletableFuture.supplyAsync(second::read);
    TestNodes.eventually("the second one is answered", () -> answers.get() > 0);
    assertThat(reading).isNotDone();
    gpu.letGo();
    assertThat(reading.get(30, TimeUnit.SECONDS)).containsOnlyKeys(BlockPath.SENT);
    assertThat(late.get(30, TimeUnit.SECONDS)).containsOnlyKeys(BlockPath.SENT);
  }

  @Test
  void aReaderThatTakesNothingLeavesPlacesToOthers() throws Exception {
    assertOthersAreSent(config -> config, 1);
  }

  /** As where readers have larger windows than an owner has memory for several. */
  @Test
  void aReaderThatTakesNothingLeavesBytesToOthers() throws Exception {
    assertOthersAreSent(config -> config.set("fetch.receiveBuffers", 6L << 20), 3);
  }

  private void assertOthersAreSent(
      final UnaryOperator<ShuffleNode.Setup> ofOwner, final int windowBlocks) throws Exception {
    final SentNodes.Member owner = nodes.start("owner", ofOwner);
    final SentNodes.Member slow =
        nodes.start("slow", config -> config.set("fetch.window.blocks", windowBlocks));
    final SentNodes.Member quick =
        nodes.start("quick", config -> config.set("fetch.window.blocks", 1));
    nodes.write();
    slow.proxy().hear(stopsAtMessages());
    final CompletableFuture<Map<BlockPath, Integer>> reading =
        CompletableFuture.supplyAsync(slow::read);
    final int windows = (nodes.source().blocks().size() + windowBlocks - 1) / windowBlocks;
    TestNodes.eventually("all is asked for", () -> owner.stats().leases().open() == windows);
    TestNodes.eventually(
        "some is being sent", () -> owner.stats().receiveBuffers().sendingBytes() > 0);
    assertThat(quick.read()).containsOnlyKeys(BlockPath.SENT);
    assertThat(owner.stats().leases().open()).as("the slow one has taken nothing").isPositive();
    goesOn.countDown();
    assertThat(reading.get(30, TimeUnit.SECONDS)).containsOnlyKeys(BlockPath.SENT);
  }

  /** Answers pass, by a connection of their own. */
  private PortProxy.Ear stopsAtMessages() {
    return new PortProxy.Ear() {
      @Override
      public void begins(final UploadId id) throws IOException {
        if (id.kind() == UploadId.MESSAGE) {
          try {
            goesOn.await(50, TimeUnit.SECONDS);
          } catch (final InterruptedException e) {
            throw new IOException(e);
          }
        }
      }
    };
  }
}
