package io.zerohop.shuffle.scale;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.device.TestClock;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.fetch.Fetch;
import java.time.Duration;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What executors cost one another, by counts; the simulation has the same up to a thousand. */
@Timeout(120)
class ScaleTest {
  private static final int MAPS = 320;
  private static final int PARTITIONS = 100;

  @TempDir private java.nio.file.Path base;

  @ParameterizedTest
  @ValueSource(ints = {2, 9, 16, 32})
  void aReaderConnectsToThoseItReadsAndAsksEachTwice(final int size) {
    final Leaks leaks = new Leaks();
    try (Cluster cluster =
        new Cluster(base, size, size, MAPS, PARTITIONS, UnaryOperator.identity())) {
      final Cluster.Executor reader = cluster.executor(0);
      assertThat(reader.channel().links()).as("before it reads anything").isZero();
      final int owners = cluster.remoteOwners(reader);
      assertThat(owners).isEqualTo(size - Math.min(size, Cluster.PER_NODE));
      assertThat(Cluster.read(reader, cluster.sources(0, 0)))
          .isEqualTo((long) MAPS * Cluster.CLASSES[0]);
      assertThat(reader.node().stats().peers().owners()).isEqualTo(owners);
      assertThat(reader.channel().links()).isEqualTo(owners);
      assertThat(reader.engine().endpoints()).isEqualTo(owners);

      final long asked = reader.channel().questions();
      final int threads = Thread.activeCount();
      Cluster.read(reader, cluster.sources(0, 1));
      assertThat(reader.channel().questions() - asked).as("OPEN and CLOSE").isEqualTo(2L * owners);
      assertThat(Thread.activeCount()).as("no thread for a peer").isLessThanOrEqualTo(threads);
      cluster.executors().forEach(each -> assertThat(each.node().stats().leases().open()).isZero());
    }
    leaks.check();
  }

  @Test
  void aReaderOfFewOwnersConnectsToThoseOnly() {
    try (Cluster cluster = new Cluster(base, 32, 4, MAPS, PARTITIONS, UnaryOperator.identity())) {
      final Cluster.Executor reader = cluster.executor(0);
      Cluster.read(reader, cluster.sources(0, 0));
      assertThat(reader.channel().connects()).isEqualTo(4);
    }
  }

  @Test
  void theFirstBlockDoesNotWaitForAllContacts() {
    try (Cluster cluster = new Cluster(base, 32, 32, MAPS, PARTITIONS, UnaryOperator.identity())) {
      final Cluster.Executor reader = cluster.executor(0);
      try (Fetch fetcher = Cluster.fetcher(reader, cluster.sources(0, 8))) {
        assertThat(fetcher.next()).isTrue();
        assertThat(reader.channel().connects()).as("of 24").isLessThan(12);
        int blocks = 1;
        while (fetcher.hasMore()) {
          assertThat(fetcher.next()).isTrue();
          blocks++;
        }
        assertThat(blocks).isEqualTo(MAPS);
        assertThat(fetcher.next()).isFalse();
      }
      assertThat(reader.channel().connects()).isEqualTo(24);
    }
  }

  @Test
  void firstContactReadsLittle() {
    try (Cluster cluster = new Cluster(base, 32, 32, MAPS, PARTITIONS, UnaryOperator.identity())) {
      final Cluster.Executor reader = cluster.executor(0);
      final long bytes = Cluster.read(reader, cluster.sources(0, 0));
      final long owners = 32 - Cluster.PER_NODE;
      final long contacts = reader.engine().receivedBytes() - bytes * owners / 32;
      final long few = 2L << 20;
      final long large = 4 * 30L << 20; // Of the first four owners 16 MiB instead of 1 MiB, twice.
      assertThat((contacts - large) / owners).as("of each").isBetween(few, few + (256 << 10));
    }
  }

  @Test
  void whoIsNotReadForLongIsDisconnected() {
    final Leaks leaks = new Leaks();
    final TestClock clock = TestClock.running();
    try (Cluster cluster =
        new Cluster(
            base,
            16,
            16,
            MAPS,
            PARTITIONS,
            config -> config.set("ucx.idle", Duration.ofMinutes(10)).clock(clock))) {
      final Cluster.Executor reader = cluster.executor(0);
      final Cluster.Executor owner = cluster.executor(8);
      for (int round = 0; round < 2; round++) {
        assertThat(Cluster.read(reader, cluster.sources(0, round)))
            .as("as often as it is wanted")
            .isEqualTo((long) MAPS * Cluster.CLASSES[0]);
        clock.advance(Duration.ofMinutes(10));
        TestNodes.eventually(
            "both ends let go of it",
            () ->
                reader.channel().links() == 0
                    && reader.engine().endpoints() == 0
                    && owner.engine().endpoints() == 0
                    && reader.node().stats().peers().owners() == 0
                    && owner.node().stats().peers().readers() == 0);
      }
      assertThat(reader.channel().connects()).isGreaterThanOrEqualTo(16);
    }
    leaks.check();
  }
}
