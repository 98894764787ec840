package io.zerohop.shuffle.bench;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.shuffle.write.MapOutput;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Blocks a second that one reader gets from a peer and reads through their streams, and map output
 * bytes that one writer packs and publishes; with and without checksums. {@link Benchmarks} runs
 * it.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.SECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class FetchBenchmark {
  private static final int MAPS = 512;
  private static final int PARTITIONS = 200;
  private static final int SHUFFLE = 1;

  /** Bytes of a block. */
  @Param({"100", "10000"})
  private int blockBytes;

  @Param({"true", "false"})
  private boolean checksum;

  private Path folder;
  private ShuffleNode owner;
  private ShuffleNode reader;
  private TestBlocks.Source source;
  private final byte[] sink = new byte[64 << 10];
  private int partition;
  private long nextMap;

  @Setup
  public void setUp() throws IOException {
    folder = Files.createTempDirectory("zerohop-bench");
    owner = start("owner");
    reader = start("reader");
    source = new TestBlocks.Source(new byte[PARTITIONS][blockBytes], 32 << 10);
    for (int map = 0; map < MAPS; map++) {
      write(SHUFFLE, map);
    }
  }

  private ShuffleNode start(final String executorId) {
    return ShuffleNode.start(
        TestNodes.config(folder.resolve("s"), executorId)
            .set("checksum.enabled", checksum)
            .set("segment.size", 128 << 20)
            .set("pool.size", 3L << 30));
  }

  private void write(final int shuffleId, final long mapId) {
    try (MapOutput writer = owner.newMapOutput(shuffleId, mapId, PARTITIONS)) {
      writer.append(source);
      writer.commit();
    } catch (final IOException e) {
      throw new UncheckedIOException(e); // It has no files.
    }
  }

  /** Blocks read; a task reads one partition of all map outputs. */
  @Benchmark
  @OperationsPerInvocation(MAPS)
  public long read() throws IOException {
    final List<Block> blocks = new ArrayList<>(MAPS);
    for (int map = 0; map < MAPS; map++) {
      blocks.add(new Block(SHUFFLE, map, map, partition, blockBytes));
    }
    partition = (partition + 1) % PARTITIONS;
    long bytes = 0;
    try (Fetch fetcher =
        reader.fetch(
            List.of(new BlockSource("owner", owner.location(), null, blocks)),
            TestNodes.noStaging(),
            TestNodes.quiet(),
            () -> false)) {
      while (fetcher.next()) {
        final FetchedBlock block = fetcher.block();
        try (InputStream in = block.stream()) {
          for (int n = in.read(sink); n > 0; n = in.read(sink)) {
            bytes += n;
          }
        }
      }
    }
    return bytes;
  }

  /** Blocks written; a task writes one map output, which is removed again. */
  @Benchmark
  @OperationsPerInvocation(PARTITIONS)
  public long write() {
    write(SHUFFLE + 1, nextMap);
    owner.remove(SHUFFLE + 1, nextMap);
    return nextMap++;
  }

  /** Entries of removed outputs stay until their shuffle ends. */
  @TearDown(Level.Iteration)
  public void forget() {
    owner.unregisterShuffle(SHUFFLE + 1);
  }

  @TearDown
  public void tearDown() throws IOException {
    reader.close();
    owner.close();
    Files.deleteIfExists(folder);
  }
}
