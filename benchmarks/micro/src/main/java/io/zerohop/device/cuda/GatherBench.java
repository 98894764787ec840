package io.zerohop.device.cuda;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.Segment;
import java.time.Duration;
import java.util.Random;

/**
 * One GPU gathers from another: blocks of one size in random order, and blocks whose sizes follow
 * Zipf's law at odd places. Yardsticks of the same run: the copy engine on one block, one way and
 * both ways, and a loop of asynchronous copies.
 */
final class GatherBench {
  private static final Duration LIMIT = Duration.ofSeconds(60);
  private static final long AREA = 4L << 30;
  private static final long WINDOW = 1L << 30;
  private static final int UNBOUNDED = 1_000;
  private static final int MAX_BLOCKS = 131_072;

  private final BenchFile file;
  private final BenchGpu reader;
  private final BenchGpu owner;
  private final Segment mapped;
  private double peak;

  private GatherBench(final BenchFile file, final BenchGpu reader, final BenchGpu owner) {
    this.file = file;
    this.reader = reader;
    this.owner = owner;
    this.mapped = reader.map(owner);
  }

  static void run(final BenchFile file) {
    final int peer = CudaDriver.devices() > 1 ? 1 : 0;
    try (BenchGpu reader = new BenchGpu(0, AREA);
        BenchGpu owner = new BenchGpu(peer, AREA)) {
      final GatherBench bench = new GatherBench(file, reader, owner);
      bench.yardsticks();
      for (final int size : new int[] {1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}) {
        for (final int sms : new int[] {8, 16, 24, UNBOUNDED}) {
          bench.even(size, sms);
        }
        bench.loop(size);
      }
      for (final int[] law :
          new int[][] {{100, 64 << 20}, {1_000, 8 << 20}, {10_000, 1 << 20}, {200_000, 64 << 10}}) {
        for (final int sms : new int[] {24, UNBOUNDED}) {
          bench.zipf(law[0], law[1], sms);
        }
      }
      for (final int sms : new int[] {1, 2, 4, 6, 8, 12, 16, 20, 24, 32, 48, 64, 96, UNBOUNDED}) {
        bench.curve(16 << 10, sms);
        bench.curve(4 << 10, sms);
      }
    }
  }

  private void yardsticks() {
    final long block = 2L << 30;
    final Samples oneWay =
        Samples.of(
            () ->
                block
                    / 1e6
                    / reader.millis(
                        reader.plain,
                        () -> reader.copy(mapped.address(), reader.received.address(), block)));
    peak = oneWay.median();
    put("copy_engine_peak", block, 1, 0, block, oneWay, oneWay);
    if (owner.ordinal != reader.ordinal) {
      final Segment back = owner.map(reader);
      final Samples both =
          Samples.of(
              () -> {
                final Thread other =
                    new Thread(
                        () ->
                            owner.millis(
                                owner.plain,
                                () -> {
                                  for (int i = 0; i < 3; i++) {
                                    owner.copy(back.address(), owner.received.address(), block);
                                  }
                                }));
                other.start();
                final double millis =
                    reader.millis(
                        reader.plain,
                        () -> {
                          for (int i = 0; i < 3; i++) {
                            reader.copy(mapped.address(), reader.received.address(), block);
                          }
                        });
                join(other);
                return 3 * block / 1e6 / millis;
              });
      put("copy_engine_two_ways", block, 1, 0, block, both, both);
    }
  }

  private static void join(final Thread thread) {
    try {
      thread.join(LIMIT.toMillis());
    } catch (final InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private void even(final int size, final int sms) {
    final int blocks = (int) Math.min(WINDOW / size, MAX_BLOCKS);
    measure("zerohop", size, sms, (batch) -> fillEven(batch, size, blocks));
  }

  private void curve(final int size, final int sms) {
    final int blocks = (int) Math.min(WINDOW / size, MAX_BLOCKS);
    measure("zerohop_by_sms", size, sms, (batch) -> fillEven(batch, size, blocks));
  }

  /** Blocks in an order that is not that of their addresses. */
  private void fillEven(final CopyBatch batch, final int size, final int blocks) {
    final long places = AREA / size;
    final long step = (places * 5 / 8) | 1; // Odd, and so prime to the number of places.
    for (int block = 0; block < blocks; block++) {
      final long place = block * step % places;
      batch.add(
          mapped.address() + place * size, reader.received.address() + (long) block * size, size);
    }
  }

  /** The probability of a size is inverse to it, from 1 byte up. */
  private void zipf(final int blocks, final int most, final int sms) {
    measure(
        "zerohop_zipf_" + blocks,
        most,
        sms,
        batch -> {
          final Random random = new Random(7);
          long to = 0;
          for (int block = 0; block < blocks; block++) {
            final int length = (int) Math.pow(most, random.nextDouble());
            final long from = (long) (random.nextDouble() * (AREA - length));
            if (to + length + 1 > AREA) {
              break;
            }
            batch.add(mapped.address() + from, reader.received.address() + to, length);
            to += length + (block & 1);
          }
        });
  }

  private interface Filler {
    void fill(CopyBatch batch);
  }

  /**
   * Windows one after another. {@code gbps} is what the GPU does with windows that were submitted;
   * {@code gbps_submitted} counts the host's work as well, by one thread that is a window ahead.
   */
  private void measure(final String name, final int size, final int sms, final Filler filler) {
    try (CopyStream stream = reader.stream(sms)) {
      final CopyBatch batch = stream.newBatch();
      filler.fill(batch);
      final int windows = (int) Math.max(2, Math.min(8, 3 * WINDOW / Math.max(1, batch.bytes())));
      stream.submit(batch);
      stream.synchronize(LIMIT);
      final Samples submitted =
          Samples.of(
              () -> {
                final long start = System.nanoTime();
                for (int i = 0; i < windows; i++) {
                  stream.submit(batch);
                }
                stream.synchronize(LIMIT);
                return (double) batch.bytes() * windows / (System.nanoTime() - start);
              });
      final int gated = batch.size() > 60_000 ? 2 : windows;
      final Samples rate =
          Samples.of(() -> batch.bytes() * gated / 1e6 / reader.gatedMillis(stream, batch, gated));
      put(name, size, batch.size(), sms, batch.bytes(), rate, submitted);
      if (sms == 24) {
        submitCost(name, size, stream, batch);
      }
    }
  }

  /** What the caller of submit pays, while the GPU is idle. */
  private void submitCost(
      final String name, final int size, final CopyStream stream, final CopyBatch batch) {
    final Samples nanos =
        Samples.of(
            () -> {
              final long start = System.nanoTime();
              stream.submit(batch);
              final long spent = System.nanoTime() - start;
              stream.synchronize(LIMIT);
              return (double) spent;
            });
    file.row(
        "case",
        name + "_submit",
        "block_bytes",
        size,
        "blocks",
        batch.size(),
        "us",
        nanos.median() / 1e3,
        "us_per_block",
        nanos.median() / 1e3 / batch.size());
  }

  private void loop(final int size) {
    final int blocks = (int) Math.min(WINDOW / size, 4_000);
    final Samples rate =
        Samples.of(
            () ->
                (double) size
                    * blocks
                    / 1e6
                    / reader.millis(
                        reader.plain,
                        () -> {
                          for (int i = 0; i < blocks; i++) {
                            final long at = (long) i * size;
                            reader.copy(
                                mapped.address() + at, reader.received.address() + at, size);
                          }
                        }));
    put("memcpy_loop", size, blocks, 0, (long) size * blocks, rate, rate);
  }

  private void put(
      final String name,
      final long size,
      final int blocks,
      final int sms,
      final long bytes,
      final Samples rate,
      final Samples submitted) {
    file.row(
        "case",
        name,
        "block_bytes",
        size,
        "blocks",
        blocks,
        "sms",
        sms == UNBOUNDED ? reader.context.kernels().multiprocessors() : sms,
        "bytes",
        bytes,
        "gbps",
        rate.median(),
        "gbps_least",
        rate.least(),
        "gbps_most",
        rate.most(),
        "gbps_submitted",
        submitted.median(),
        "share_of_peak",
        rate.median() / peak);
  }
}
