package io.zerohop.shuffle.fetch;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.route.PathChooser.Route;
import io.zerohop.shuffle.transport.Transport;
import io.zerohop.shuffle.transport.remote.SendPlaces;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/**
 * Reduce tasks that read from executors by messages, over a {@link PacedNetwork}. The order of
 * owners, the windows and the owner's queue are the product's classes, or what stands in place of
 * them to compare. For one thread.
 */
final class IncastModel implements AutoCloseable {
  /** 100 Gb/s. */
  private static final double RATE = 12.5e9;

  /** From a question to the owner's queue, and for what comes back before the first byte. */
  private static final double LATENCY_NANOS = 30_000;

  private static final Duration LIMIT = Duration.ofMinutes(1);
  private static final Route BY_UCX = new Route(BlockPath.UCX, null, null);

  private final Devices devices = new Devices(null);
  private final PacedNetwork network;
  private final List<SendPlaces> places = new ArrayList<>();
  private final long windowBytes;
  private final Map<Integer, Fetches> executors = new HashMap<>();
  private final List<Asked> all = new ArrayList<>();
  private long nextMap;

  /** One window: who read it, and how long it took from being asked for until it was there. */
  record Asked(int reader, double nanos) {}

  /**
   * @param queue the places of one owner
   * @param windowBytes as {@code spark.zerohop.fetch.window.size}
   */
  IncastModel(final int executors, final Supplier<SendPlaces> queue, final long windowBytes) {
    network = new PacedNetwork(executors, RATE);
    this.windowBytes = windowBytes;
    for (int i = 0; i < executors; i++) {
      places.add(queue.get());
    }
  }

  /** So many blocks of an owner, none of them read before. */
  BlockSource source(final int owner, final int blocks, final int bytes) {
    final List<Block> all = new ArrayList<>();
    for (int i = 0; i < blocks; i++) {
      all.add(new Block(1, nextMap, (int) nextMap, 0, bytes));
      nextMap++;
    }
    return new BlockSource(Integer.toString(owner), null, null, all);
  }

  /** A reduce task of an executor begins at some time. */
  void task(final int reader, final double startNanos, final List<BlockSource> sources) {
    network.after(startNanos, () -> new Task(reader).begin(sources));
  }

  void run() {
    network.run();
  }

  /** When the last byte was there, in seconds. */
  double seconds() {
    return network.now() / 1e9;
  }

  /** Milliseconds that a fetch of some readers took, so many of a hundred less. */
  double percentile(final int percent, final int firstReader, final int endReader) {
    final double[] sorted =
        all.stream()
            .filter(it -> it.reader() >= firstReader && it.reader() < endReader)
            .mapToDouble(Asked::nanos)
            .sorted()
            .toArray();
    return sorted[Math.min(sorted.length - 1, sorted.length * percent / 100)] / 1e6;
  }

  int fetches() {
    return all.size();
  }

  @Override
  public void close() {
    devices.close();
  }

  private final class Task {
    private final int reader;
    private final BlockTransfers transfers;

    Task(final int reader) {
      this.reader = reader;
      transfers =
          new BlockTransfers(
              new Reader(
                  executors.computeIfAbsent(reader, first -> fetches()),
                  null,
                  null,
                  ReadSide.HOST,
                  () -> false),
              Map.of(BlockPath.UCX, this::fetch),
              (source, block, cause, attempts) -> BlockPath.UCX);
    }

    private Fetches fetches() {
      return new Fetches(
          Config.defaults()
              .with("fetch.window.size", windowBytes)
              .with("fetch.receiveBuffers", Long.MAX_VALUE / 2),
          LIMIT,
          Clock.system(),
          devices,
          null,
          null,
          Map.of());
    }

    void begin(final List<BlockSource> sources) {
      sources.forEach(source -> transfers.add(source, source.blocks(), BY_UCX));
      transfers.start();
    }

    private void fetch(
        final BlockSource source, final List<Block> blocks, final Transport.Sink sink) {
      final double asked = network.now();
      final int owner = Integer.parseInt(source.executorId());
      final double bytes = blocks.stream().mapToLong(Block::bytes).sum();
      final List<Block> window = List.copyOf(blocks);
      network.after(
          LATENCY_NANOS,
          () ->
              places
                  .get(owner)
                  .submit(
                      reader,
                      () ->
                          network.move(
                              owner, reader, bytes, () -> arrived(owner, window, asked, sink))));
    }

    private void arrived(
        final int owner, final List<Block> window, final double asked, final Transport.Sink sink) {
      all.add(new Asked(reader, network.now() - asked));
      places.get(owner).ended(reader);
      window.forEach(block -> sink.arrived(block, new Bytes(block.bytes())));
      while (transfers.poll() != null) {
        transfers.endReservation();
      }
      transfers.start();
    }
  }

  /** Bytes that only count. */
  private record Bytes(long bytes) implements Transport.Payload {
    @Override
    public InputStream open(final BooleanSupplier ended) {
      return InputStream.nullInputStream();
    }

    @Override
    public void release() {}
  }

  /** The owners as Spark lists them, or turned. */
  static List<BlockSource> order(
      final List<BlockSource> listed, final long task, final boolean turned) {
    return turned
        ? BlockSource.turned(listed, task)
        : Arrays.asList(listed.toArray(BlockSource[]::new));
  }
}
