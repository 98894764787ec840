package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.TestClock;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.BlockPath;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * A reader that ends without a word, at each step of a transfer: its owner lets go of all that it
 * held for it, and goes on.
 */
@Timeout(60)
@ExtendWith(QuietNetwork.class)
class SentReaderDeathTest {
  /** Two are the road and the way back; each may be tried once more before the reader is gone. */
  private static final int MAX_ATTEMPTS = 4;

  /** Longer than an owner holds anything for somebody who says nothing. */
  private static final Duration LONGEST = Duration.ofMinutes(6);

  @TempDir private java.nio.file.Path folder;
  private final AtomicBoolean reached = new AtomicBoolean();
  private SentNodes nodes;
  private SentNodes.Member owner;
  private SentNodes.Member reader;
  private CompletableFuture<Map<BlockPath, Integer>> reading;

  /** Spark ends connections on which nothing was said for a while. */
  @BeforeEach
  void start() throws IOException {
    nodes = new SentNodes(folder, Map.of("spark.shuffle.io.connectionTimeout", "1s"));
    owner = nodes.start("owner");
    reader = nodes.start("reader", config -> config.set("fetch.window.blocks", 4));
    nodes.write();
  }

  @AfterEach
  @SuppressWarnings("try") // A flight is there to be closed.
  void nothingIsHeld() throws Exception {
    try (TestClock.Flight limits = reader.clock().fly()) {
      reading.get(30, TimeUnit.SECONDS);
    }
    nodes.close();
  }

  private void readUntil(final TransferStep step, final TransferStep.Action ending) {
    step.await(
        owner,
        reader,
        () -> {
          if (reached.compareAndSet(false, true)) {
            ending.run();
          }
        });
    reading = CompletableFuture.supplyAsync(reader::readUntilItFails);
    TestNodes.eventually("the step was reached", reached::get);
  }

  @SuppressWarnings("try") // A flight is there to be closed.
  private void assertLetsGo() {
    owner.clock().advance(LONGEST);
    try (TestClock.Flight limits = owner.clock().fly()) {
      owner.awaitIdle();
      TestNodes.eventually("nobody reads", () -> owner.stats().peers().readers() == 0);
    }
  }

  @ParameterizedTest
  @EnumSource
  void anOwnerLetsGoOfAReaderThatIsKilled(final TransferStep step) {
    readUntil(step, () -> nodes.kill(reader));
    assertLetsGo();
    assertThat(owner.looks()).as("attempts to reach it").isLessThanOrEqualTo(MAX_ATTEMPTS);
  }

  /** Nothing says so then: what ends it are the limits of leases and of connections. */
  @ParameterizedTest
  @EnumSource
  void anOwnerLetsGoOfAReaderWhoseHostIsGone(final TransferStep step) {
    readUntil(step, () -> nodes.silence(reader));
    assertLetsGo();
  }

  @Test
  void theOwnerSendsToOthersAfterwards() throws Exception {
    readUntil(TransferStep.SENDING, () -> nodes.kill(reader));
    assertLetsGo();
    owner.proxy().open();
    final SentNodes.Member other = nodes.start("other");
    assertThat(other.read()).containsOnlyKeys(BlockPath.SENT);
  }
}
