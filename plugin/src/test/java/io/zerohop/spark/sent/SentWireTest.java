package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.spark.TlsKeys;
import io.zerohop.spark.sent.PortCarrier.PortEncryption;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What somebody sees of rows who listens between the executors, at either port. */
@Timeout(60)
@ExtendWith(QuietNetwork.class)
class SentWireTest {
  private static final String MARKER = "rows that nobody on the way may read; ";

  /** Such as are packed, go by themselves, and are cut. */
  private static final int[] TIMES = {1, 20, 10_000, 80_000};

  @TempDir private static java.nio.file.Path keys;
  @TempDir private java.nio.file.Path folder;

  private static Map<String, String> settings(final PortEncryption encryption) {
    final String proof = "spark.authenticate";
    final String secret = "spark.authenticate.secret";
    return switch (encryption) {
      case NONE -> Map.of(proof, "true", secret, "a secret");
      case AES -> Map.of(proof, "true", secret, "a secret", "spark.network.crypto.enabled", "true");
      case SASL ->
          Map.of(
              proof, "true", secret, "a secret", "spark.authenticate.enableSaslEncryption", "true");
      case TLS -> TlsKeys.settings(keys);
    };
  }

  @ParameterizedTest
  @EnumSource
  void rowsAreReadOnTheWayOnlyWhereNothingIsEncrypted(final PortEncryption encryption)
      throws IOException {
    try (SentNodes nodes = new SentNodes(folder, settings(encryption))) {
      final SentNodes.Member owner = nodes.start("owner");
      final SentNodes.Member reader = nodes.start("reader");
      owner.proxy().record();
      reader.proxy().record();
      final List<Block> blocks = write(owner);
      assertThat(PortEncryption.of(owner.port().conf())).isEqualTo(encryption);
      assertComeWhole(nodes, reader, blocks);
      final long bytes = blocks.stream().mapToLong(Block::bytes).sum();
      assertThat(reader.proxy().carried()).as("they came this way").isGreaterThan(bytes);
      assertThat(reader.proxy().hasCarried(MARKER)).isEqualTo(encryption == PortEncryption.NONE);
      assertThat(owner.proxy().hasCarried(MARKER)).as("at the owner's port").isFalse();
    }
  }

  private static List<Block> write(final SentNodes.Member owner) {
    final byte[][] rows = new byte[TIMES.length][];
    final List<Block> blocks = new ArrayList<>();
    for (int i = 0; i < rows.length; i++) {
      rows[i] = MARKER.repeat(TIMES[i]).getBytes(StandardCharsets.UTF_8);
      blocks.add(new Block(SentNodes.SHUFFLE, 0, 0, i, rows[i].length));
    }
    try (MapOutput writer =
        owner.node().newMapOutput(SentNodes.SHUFFLE, 0, rows.length, Tier.HOST, null)) {
      writer.append(new TestBlocks.Source(rows, 64 << 10));
      writer.commit();
    } catch (final IOException e) {
      throw new UncheckedIOException(e); // It has no files.
    }
    return blocks;
  }

  private static void assertComeWhole(
      final SentNodes nodes, final SentNodes.Member reader, final List<Block> blocks) {
    int come = 0;
    try (Fetch fetcher = reader.fetch(nodes.source(blocks))) {
      while (fetcher.next()) {
        final int times = TIMES[fetcher.block().block().partition()];
        assertThat(fetcher.block().path()).isEqualTo(BlockPath.SENT);
        assertThat(new String(TestNodes.read(fetcher.block()), StandardCharsets.UTF_8))
            .isEqualTo(MARKER.repeat(times));
        come++;
      }
    }
    assertThat(come).isEqualTo(blocks.size());
  }
}
