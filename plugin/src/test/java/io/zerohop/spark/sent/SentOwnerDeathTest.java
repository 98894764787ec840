package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.TestClock;
import java.io.IOException;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * An owner that ends without a word, at each step of a transfer: its reader fails soon, has read
 * nothing that was not written, and holds nothing.
 */
@Timeout(60)
@ExtendWith(QuietNetwork.class)
class SentOwnerDeathTest {
  @TempDir private java.nio.file.Path folder;
  private final AtomicBoolean reached = new AtomicBoolean();
  private SentNodes nodes;
  private SentNodes.Member owner;
  private SentNodes.Member reader;
  private TestClock.Flight limits;

  @BeforeEach
  void start() throws IOException {
    nodes = new SentNodes(folder, Map.of());
    owner = nodes.start("owner");
    reader = nodes.start("reader");
    nodes.write();
  }

  @AfterEach
  void nothingIsHeld() throws IOException {
    assertThat(reached).as("the step was reached").isTrue();
    reader.awaitIdle();
    if (limits != null) {
      limits.close();
    }
    nodes.close();
  }

  @ParameterizedTest
  @EnumSource
  void anOwnerThatIsKilledFailsTheFetch(final TransferStep step) {
    step.await(owner, reader, () -> end(() -> nodes.kill(owner)));
    assertThat(reader.readUntilItFails()).isEmpty();
  }

  /** Nobody refuses anything then: what ends it are limits. */
  @ParameterizedTest
  @EnumSource
  void anOwnerWhoseHostIsGoneFailsTheFetch(final TransferStep step) {
    step.await(
        owner,
        reader,
        () ->
            end(
                () -> {
                  nodes.silence(owner);
                  limits = reader.clock().fly();
                }));
    assertThat(reader.readUntilItFails()).isEmpty();
  }

  private interface Ending {
    void end() throws IOException;
  }

  private void end(final Ending ending) throws IOException {
    if (reached.compareAndSet(false, true)) {
      ending.end();
    }
  }
}
