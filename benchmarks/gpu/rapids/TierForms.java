import ai.rapids.cudf.BaseDeviceMemoryBuffer;
import ai.rapids.cudf.Cuda;
import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.HostMemoryBuffer;
import ai.rapids.cudf.PinnedMemoryPool;
import ai.rapids.cudf.Rmm;
import ai.rapids.cudf.RmmAllocationMode;
import ai.rapids.cudf.nvcomp.BatchedCompressor;
import ai.rapids.cudf.nvcomp.BatchedDecompressor;
import ai.rapids.cudf.nvcomp.BatchedLZ4Compressor;
import ai.rapids.cudf.nvcomp.BatchedLZ4Decompressor;
import ai.rapids.cudf.nvcomp.BatchedZstdCompressor;
import ai.rapids.cudf.nvcomp.BatchedZstdDecompressor;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/**
 * Times what a segment of GPU memory costs on its way to pinned host memory and back, as it is and
 * compressed on the GPU by nvCOMP: TierForms SECONDS. Writes a line of JSON for each kind of data,
 * size and codec, with medians in milliseconds. What would begin after so many seconds is left out.
 */
public final class TierForms {
  private static final int ROUNDS = 9;
  private static final int WARM_UPS = 2;
  private static final long POOL_BYTES = 24L << 30;
  private static final int CHUNK_BYTES = 64 << 10;
  private static final long BUFFERS_BYTES = 256L << 20;
  private static final int[] SEGMENTS_MIB = {32, 256, 1024};
  private static final String[] WORDS = {
    "furiously", "regular", "deposits", "sleep", "carefully", "final", "packages", "about", "the", "quick",
    "accounts", "express", "ironic", "requests", "haggle", "slyly", "pending", "theodolites", "bold", "even"
  };

  private final Cuda.Stream stream;
  private final DeviceMemoryBuffer data;
  private final HostMemoryBuffer host;

  private TierForms(final Cuda.Stream stream, final DeviceMemoryBuffer data, final HostMemoryBuffer host) {
    this.stream = stream;
    this.data = data;
    this.host = host;
  }

  public static void main(final String[] arguments) {
    final long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(Long.parseLong(arguments[0]));
    Rmm.initialize(RmmAllocationMode.CUDA_ASYNC, null, POOL_BYTES);
    PinnedMemoryPool.initialize(2L << 30);
    for (final int mebibytes : SEGMENTS_MIB) {
      for (final String kind : new String[] {"random", "keys", "prices", "codes", "text"}) {
        if (System.nanoTime() < end) {
          measure(kind, (long) mebibytes << 20);
        }
      }
    }
    System.exit(0); // cudf's threads would go on.
  }

  private static void measure(final String kind, final long bytes) {
    try (Cuda.Stream stream = new Cuda.Stream(true);
        DeviceMemoryBuffer data = DeviceMemoryBuffer.allocate(bytes);
        HostMemoryBuffer host = PinnedMemoryPool.allocate(bytes)) {
      fill(host, kind, bytes);
      data.copyFromHostBuffer(host);
      final TierForms forms = new TierForms(stream, data, host);
      final double[] plain = forms.plain();
      report(kind, bytes, "none", 1, plain, plain);
      final BatchedCompressor lz4 = new BatchedLZ4Compressor(CHUNK_BYTES, BUFFERS_BYTES);
      report(kind, bytes, "lz4", forms, plain, lz4, new BatchedLZ4Decompressor(CHUNK_BYTES));
      final BatchedCompressor zstd = new BatchedZstdCompressor(CHUNK_BYTES, BUFFERS_BYTES);
      report(kind, bytes, "zstd", forms, plain, zstd, new BatchedZstdDecompressor(CHUNK_BYTES));
    }
  }

  private static void report(
      final String kind,
      final long bytes,
      final String codec,
      final TierForms forms,
      final double[] plain,
      final BatchedCompressor compressor,
      final BatchedDecompressor decompressor) {
    final double[] steps = new double[4];
    final double ratio = forms.compressed(compressor, decompressor, steps);
    report(kind, bytes, codec, ratio, steps, plain);
  }

  /**
   * @param steps milliseconds of compressing, copying down, copying up, decompressing
   * @param plain the same of the data as it is
   */
  private static void report(
      final String kind, final long bytes, final String codec, final double ratio, final double[] steps, final double[] plain) {
    final double inTurn = Arrays.stream(steps).sum();
    // Segments in a row: one is compressed while the one before is copied.
    final double pipelined = Math.max(steps[0], steps[1]) + Math.max(steps[2], steps[3]);
    final double yardstick = Arrays.stream(plain).sum();
    System.out.printf(
        Locale.ROOT,
        "{\"data\": \"%s\", \"mib\": %d, \"codec\": \"%s\", \"ratio\": %.2f, \"compress_ms\": %.2f, \"down_ms\": %.2f,"
            + " \"up_ms\": %.2f, \"decompress_ms\": %.2f, \"times_as_fast\": %.2f, \"times_as_fast_pipelined\": %.2f}%n",
        kind, bytes >> 20, codec, ratio, steps[0], steps[1], steps[2], steps[3], yardstick / inTurn, yardstick / pipelined);
  }

  private double[] plain() {
    return medians(
        times -> {
          times[1] = time(() -> host.copyFromDeviceBufferAsync(data, stream));
          times[2] = time(() -> data.copyFromHostBufferAsync(host, stream));
        });
  }

  private double compressed(
      final BatchedCompressor compressor, final BatchedDecompressor decompressor, final double[] steps) {
    final double[] ratio = new double[1];
    try (DeviceMemoryBuffer back = DeviceMemoryBuffer.allocate(data.getLength())) {
      final double[] found =
          medians(
              times -> {
                final DeviceMemoryBuffer[][] packed = new DeviceMemoryBuffer[1][];
                data.incRefCount(); // compress() closes what it is given.
                times[0] = time(() -> packed[0] = compressor.compress(new BaseDeviceMemoryBuffer[] {data}, stream));
                final DeviceMemoryBuffer small = packed[0][0];
                ratio[0] = (double) data.getLength() / small.getLength();
                final long bytes = Math.min(small.getLength(), host.getLength());
                try (HostMemoryBuffer target = host.slice(0, bytes);
                    DeviceMemoryBuffer source = small.slice(0, bytes)) {
                  times[1] = time(() -> target.copyFromDeviceBufferAsync(source, stream));
                  times[2] = time(() -> source.copyFromHostBufferAsync(target, stream));
                }
                times[3] =
                    time(
                        () ->
                            decompressor.decompressAsync(
                                new BaseDeviceMemoryBuffer[] {small}, new BaseDeviceMemoryBuffer[] {back}, stream));
              });
      System.arraycopy(found, 0, steps, 0, steps.length);
      compare(back);
    }
    return ratio[0];
  }

  private void compare(final DeviceMemoryBuffer back) {
    final byte[] expected = new byte[1 << 20];
    final byte[] got = new byte[1 << 20];
    try (HostMemoryBuffer left = HostMemoryBuffer.allocate(data.getLength(), false);
        HostMemoryBuffer right = HostMemoryBuffer.allocate(data.getLength(), false)) {
      left.copyFromDeviceBuffer(data);
      right.copyFromDeviceBuffer(back);
      for (long at = 0; at < data.getLength(); at += expected.length) {
        left.getBytes(expected, 0, at, expected.length);
        right.getBytes(got, 0, at, got.length);
        if (!Arrays.equals(expected, got)) {
          throw new IllegalStateException("other bytes came back, from " + at);
        }
      }
    }
  }

  private interface Round {
    void run(double[] times);
  }

  private static double[] medians(final Round round) {
    final double[][] all = new double[4][ROUNDS];
    for (int i = -WARM_UPS; i < ROUNDS; i++) {
      final double[] times = new double[4];
      round.run(times);
      for (int step = 0; step < times.length && i >= 0; step++) {
        all[step][i] = times[step];
      }
    }
    final double[] medians = new double[4];
    for (int step = 0; step < medians.length; step++) {
      Arrays.sort(all[step]);
      medians[step] = all[step][ROUNDS / 2];
    }
    return medians;
  }

  private double time(final Runnable work) {
    stream.sync();
    final long start = System.nanoTime();
    work.run();
    stream.sync();
    return (System.nanoTime() - start) / 1e6;
  }

  /** Columns as TPC-DS and TPC-H have them: surrogate keys, prices, dates and codes, comments. */
  private static void fill(final HostMemoryBuffer host, final String kind, final long bytes) {
    final Random random = new Random(42);
    final int block = 8 << 20;
    final long[] longs = new long[block / Long.BYTES];
    final StringBuilder text = new StringBuilder();
    for (long at = 0; at < bytes; at += block) {
      if (kind.equals("text")) {
        text.setLength(0);
        while (text.length() < block) {
          text.append(WORDS[random.nextInt(WORDS.length)]).append(random.nextInt(50) == 0 ? ". " : " ");
        }
        host.setBytes(at, text.toString().getBytes(StandardCharsets.US_ASCII), 0, block);
        continue;
      }
      for (int i = 0; i < longs.length; i++) {
        longs[i] =
            switch (kind) {
              case "random" -> random.nextLong();
              case "keys" -> random.nextInt(2_000_000);
              case "prices" -> Double.doubleToLongBits(random.nextInt(30_000) / 100.0);
              default -> (long) random.nextInt(1_800) << Integer.SIZE | random.nextInt(12);
            };
      }
      host.setLongs(at, longs, 0, longs.length);
    }
  }
}
