package io.zerohop.device.cuda;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import jcuda.driver.CUevent;

/**
 * Every GPU gathers its part from every other at once: in one block for each pair, as NCCL's
 * all_to_all_single moves it (benchmarks/gpu/yardsticks.py measures that in the same run), and in
 * blocks of 256 KiB and of 16 KiB. Counted are the bytes that a GPU gets from others, over the time
 * that the slowest GPU takes.
 */
final class AllToAllBench {
  private static final Duration LIMIT = Duration.ofSeconds(60);
  private static final long LARGEST = 4L << 30;

  private AllToAllBench() {}

  static void run(final BenchFile file, final int count) {
    final List<BenchGpu> gpus = new ArrayList<>();
    try {
      for (int i = 0; i < count; i++) {
        gpus.add(new BenchGpu(i, LARGEST));
      }
      for (final BenchGpu reader : gpus) {
        for (final BenchGpu owner : gpus) {
          if (owner != reader) {
            reader.map(owner);
          }
        }
      }
      for (final long bytes : new long[] {16L << 20, 256L << 20, 1L << 30, 4L << 30}) {
        for (final long block : new long[] {bytes / count, 256 << 10, 16 << 10}) {
          if (bytes / block <= 100_000) {
            measure(file, gpus, bytes, block, 24);
          }
        }
      }
      for (final int sms : new int[] {2, 4, 8, 12, 16, 20, 32, 48, 64, 1_000}) {
        measure(file, gpus, 1L << 30, 256 << 10, sms);
      }
    } finally {
      gpus.forEach(BenchGpu::close);
    }
  }

  private static void measure(
      final BenchFile file,
      final List<BenchGpu> gpus,
      final long bytes,
      final long block,
      final int sms) {
    final int count = gpus.size();
    final long part = bytes / count;
    final List<CopyStream> streams = new ArrayList<>();
    final List<CopyBatch> batches = new ArrayList<>();
    for (final BenchGpu reader : gpus) {
      final CopyStream stream = reader.stream(sms);
      streams.add(stream);
      batches.add(batch(stream, reader, part, block));
    }
    final int windows = (int) Math.max(3, Math.min(50, (4L << 30) / bytes));
    final Samples rate =
        Samples.of(
            () -> {
              final List<CUevent[]> events = new ArrayList<>();
              for (int i = 0; i < count; i++) {
                events.add(gpus.get(i).begin(streams.get(i)));
              }
              for (int window = 0; window < windows; window++) {
                for (int i = 0; i < count; i++) {
                  streams.get(i).submit(batches.get(i));
                }
              }
              double slowest = 0;
              for (int i = 0; i < count; i++) {
                gpus.get(i).end(streams.get(i), events.get(i));
              }
              for (int i = 0; i < count; i++) {
                slowest = Math.max(slowest, gpus.get(i).elapsed(events.get(i)));
                streams.get(i).synchronize(LIMIT);
              }
              return part * (count - 1) / 1e6 * windows / slowest;
            });
    streams.forEach(CopyStream::close);
    file.row(
        "case",
        "zerohop",
        "gpus",
        count,
        "bytes_per_rank",
        bytes,
        "block_bytes",
        block,
        "sms",
        Math.min(sms, gpus.get(0).context.kernels().multiprocessors()),
        "gbps",
        rate.median(),
        "gbps_least",
        rate.least(),
        "gbps_most",
        rate.most());
  }

  /** Blocks of all peers in turns, so that nobody is asked by all at once. */
  private static CopyBatch batch(
      final CopyStream stream, final BenchGpu reader, final long part, final long block) {
    final CopyBatch batch = stream.newBatch();
    final int peers = reader.mapped.size();
    for (long at = 0; at < part; at += block) {
      for (int i = 0; i < peers; i++) {
        final int peer = (i + reader.ordinal) % peers;
        final long length = Math.min(block, part - at);
        batch.add(
            reader.mapped.get(peer).address() + part * reader.ordinal + at,
            reader.received.address() + part * peer + at,
            length);
      }
    }
    return batch;
  }
}
