package io.zerohop.shuffle;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.ChildJvm;
import io.zerohop.device.Leaks;
import io.zerohop.device.exchange.RelayingProcess;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import io.zerohop.shuffle.transport.Transport.Payload;
import io.zerohop.shuffle.write.MapOutput;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Blocks of an owner whose socket a process of the same user has taken, with checksums on. */
class RelayedReadTest {
  private static final int PARTITIONS = 4;
  private static final byte[] BLOCK =
      ("PAY 100 EUR TO " + RelayingProcess.MARK + " ").repeat(3_000).getBytes(US_ASCII);

  @TempDir private java.nio.file.Path base;
  private final Leaks leaks = new Leaks();
  private ShuffleNode owner;
  private BlockSource source;

  @BeforeEach
  void write() {
    owner = TestNodes.start(base.resolve("s"), "owner");
    final byte[][] partitions = new byte[PARTITIONS][];
    Arrays.fill(partitions, BLOCK);
    try (MapOutput writer = owner.newMapOutput(1, 0, PARTITIONS)) {
      writer.append(new TestBlocks.Source(partitions, BLOCK.length));
      writer.commit();
    } catch (final IOException e) {
      throw new UncheckedIOException(e); // It has no files.
    }
    final List<Block> blocks = new ArrayList<>();
    for (int partition = 0; partition < PARTITIONS; partition++) {
      blocks.add(new Block(1, 0, 0, partition, BLOCK.length));
    }
    source = new BlockSource("owner", owner.location(), null, blocks);
  }

  @AfterEach
  void noLeaks() {
    owner.unregisterShuffle(1);
    TestNodes.assertNothingHeld(owner);
    owner.close();
    leaks.check();
  }

  @Test
  void blocksThatARelayAlteredAreNotRead() throws Exception {
    final java.nio.file.Path socket =
        base.resolve("s").resolve("app-test").resolve(owner.location().socket());
    try (ChildJvm relay =
            ChildJvm.start(
                List.of(),
                RelayingProcess.class,
                RelayingProcess.Mode.SUBSTITUTE.name(),
                socket.toString());
        ShuffleNode reader = TestNodes.start(base.resolve("s"), "reader")) {
      assertThat(relay.line()).isEqualTo("in its place");
      final List<BlockPath> paths = new ArrayList<>();
      try (Fetch fetcher =
          reader.fetch(List.of(source), staging(), TestNodes.quiet(), () -> false)) {
        while (fetcher.next()) {
          assertThat(new String(TestNodes.read(fetcher.block()), US_ASCII))
              .isEqualTo(new String(BLOCK, US_ASCII));
          paths.add(fetcher.block().path());
        }
      }
      assertThat(paths).hasSize(PARTITIONS).containsOnly(BlockPath.STAGED);
      assertThat(Holdings.of(owner).readingPeers()).isZero();
      assertThat(owner.stats().peers().strangers()).isPositive();
      relay.kill();
    }
  }

  private static FallbackTransport staging() {
    return (from, blocks, sink) ->
        blocks.forEach(
            block ->
                sink.arrived(
                    block,
                    new Payload() {
                      @Override
                      public long bytes() {
                        return BLOCK.length;
                      }

                      @Override
                      public InputStream open(final BooleanSupplier ended) {
                        return new ByteArrayInputStream(BLOCK);
                      }

                      @Override
                      public void release() {}
                    }));
  }
}
