package io.zerohop.bench;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.extent.ExtentList.ExtentConsumer;
import io.zerohop.shuffle.write.MapOutput;
import io.zerohop.shuffle.write.MapOutput.PackSource;
import io.zerohop.spark.outputfiles.MapOutputFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.unsafe.Platform;

/**
 * Map outputs in host memory, and Spark's local directories to which they can be moved as the
 * spiller does that. For one thread.
 */
final class ColdOutputs implements AutoCloseable {
  static final long BYTES = 256L << 20;

  private static final int SHUFFLE = 1;

  private final SparkContext spark;
  private final ShuffleNode node;
  private final MapOutputFiles files;
  private final List<MapOutputLease> leases = new ArrayList<>();
  private final List<List<Range>> ranges = new ArrayList<>();

  /** Bytes that lie together. */
  record Range(long address, long bytes) {
    long end() {
      return address + bytes;
    }
  }

  private ColdOutputs(final SparkContext spark, final ShuffleNode node) {
    this.spark = spark;
    this.node = node;
    this.files = new MapOutputFiles();
  }

  /**
   * Starts Spark in this process, and a node.
   *
   * @param dir Spark's local directory
   */
  static ColdOutputs start(final Path dir, final Path sockets) {
    final SparkContext spark =
        new SparkContext(
            new SparkConf(false)
                .setMaster("local[1]")
                .setAppName("zerohop-spill")
                .set("spark.ui.enabled", "false")
                .set("spark.driver.host", "127.0.0.1")
                .set("spark.driver.bindAddress", "127.0.0.1")
                .set("spark.local.dir", dir.toString())
                .set("spark.shuffle.compress", "false"));
    return new ColdOutputs(
        spark,
        ShuffleNode.start(
            new ShuffleNode.Setup(Config.defaults(), spark.applicationId(), "1", new byte[32])
                .set("socket.dir", sockets)
                .set("pool.size", 2 * BYTES)
                .set("segment.size", 128 << 20)
                .set("spill.start", 1)));
  }

  /**
   * Fills memory with outputs.
   *
   * @param blockBytes of a block's part in each batch
   */
  void write(final int outputBytes, final int blockBytes, final int batches) {
    final int partitions = outputBytes / blockBytes / batches;
    final byte[] block = new byte[blockBytes];
    new Random(blockBytes).nextBytes(block);
    final long address = Platform.allocateMemory(blockBytes);
    try {
      Platform.copyMemory(block, Platform.BYTE_ARRAY_OFFSET, null, address, blockBytes);
      final PackSource source = new Same(partitions, address, blockBytes);
      for (int map = 0; map < BYTES / outputBytes; map++) {
        try (MapOutput writer = node.newMapOutput(SHUFFLE, map, partitions)) {
          for (int batch = 0; batch < batches; batch++) {
            writer.append(source);
          }
          writer.commit();
        } catch (final IOException e) {
          throw new UncheckedIOException(e); // It has no files.
        }
        leases.add(node.lease(SHUFFLE, map));
        ranges.add(rangesOf(leases.get(map)));
      }
    } finally {
      Platform.freeMemory(address);
    }
  }

  private static List<Range> rangesOf(final MapOutputLease lease) {
    final List<Range> extents = new ArrayList<>();
    for (int partition = 0; partition < lease.partitions(); partition++) {
      lease.forEachExtent(partition, (address, length) -> extents.add(new Range(address, length)));
    }
    extents.sort(Comparator.comparingLong(Range::address));
    final List<Range> whole = new ArrayList<>();
    for (final Range extent : extents) {
      final int last = whole.size() - 1;
      if (last >= 0 && whole.get(last).end() == extent.address()) {
        whole.set(
            last, new Range(whole.get(last).address(), extent.end() - whole.get(last).address()));
      } else {
        whole.add(extent);
      }
    }
    return whole;
  }

  /** Where each output's bytes lie, however they are cut into blocks. */
  List<List<Range>> ranges() {
    return ranges;
  }

  /** Bytes of all outputs. */
  long bytes() {
    return ranges.stream().flatMap(List::stream).mapToLong(Range::bytes).sum();
  }

  /** Moves all outputs to files, which are deleted afterwards; returns seconds. */
  Took store() throws IOException {
    final Took.Start start = Took.begin();
    for (int map = 0; map < leases.size(); map++) {
      files.store(SHUFFLE, map, leases.get(map));
    }
    final Took took = start.took();
    files.unregisterShuffle(SHUFFLE);
    return took;
  }

  /** Frees the outputs. */
  void forget() {
    leases.forEach(MapOutputLease::close);
    leases.clear();
    ranges.clear();
    node.unregisterShuffle(SHUFFLE);
  }

  @Override
  public void close() {
    forget();
    try {
      node.close();
    } finally {
      spark.stop();
    }
  }

  /** The same bytes for every partition. */
  private record Same(int partitions, long address, int bytes) implements PackSource {
    @Override
    public void forEachChunk(final int partition, final ExtentConsumer consumer) {
      consumer.extent(address, bytes);
    }
  }
}
