package io.zerohop.shuffle.transport.ucx;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.shuffle.DeviceOnlyGpu;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestNodes;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The threads of an executor that has nothing to do: those of docs/limits.md. */
@Timeout(60)
class ThreadsAtRestTest {
  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private final FakeUcx ucx = new FakeUcx();
  private final LocalChannels channels = new LocalChannels();
  private final LocalCarriers carriers = new LocalCarriers();

  @AfterEach
  void noLeaks() {
    ucx.close();
    leaks.check();
  }

  private static List<String> threads(final Set<Thread> before) {
    return Stream.of(Thread.getAllStackTraces().keySet())
        .flatMap(Set::stream)
        .filter(thread -> !before.contains(thread))
        .map(Thread::getName)
        .filter(name -> name.startsWith("zerohop-"))
        .map(name -> name.replaceFirst("(zerohop-exchange)-.*", "$1"))
        .sorted()
        .toList();
  }

  /** The peer watch begins with the first neighbour; UCX is a fake here, which has no thread. */
  @Test
  void anExecutorWithAllPathsHasOnlyThoseThatWait() {
    final Set<Thread> before = Thread.getAllStackTraces().keySet();
    final ShuffleNode.Setup setup =
        TestNodes.config(base.resolve("s"), "1")
            .neighbours()
            .ucx(onStart -> ucx.engine(), channels::open)
            .set("internal.ucx.emulatedGets", true)
            .carrier(carriers.of("1"));
    try (ShuffleNode node = ShuffleNode.start(setup, new DeviceOnlyGpu())) {
      assertThat(node.location().port()).as("UCX is there").isPositive();
      assertThat(threads(before))
          .containsExactly("zerohop-copy-completions", "zerohop-exchange", "zerohop-housekeeping");
    }
  }
}
