package io.zerohop.device.cuda;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.Segment;
import io.zerohop.device.host.HostDevice;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import jcuda.driver.JCudaDriver;

/**
 * Between GPU memory and segments of host memory that were pinned: map outputs that leave the GPU,
 * and blocks that are read where they lie. Yardsticks of the same run: the copy engine between GPU
 * memory and memory that the driver allocated, on one block.
 */
final class HostLinkBench {
  private static final Duration LIMIT = Duration.ofSeconds(60);
  private static final long SEGMENT = 128L << 20;
  private static final int SEGMENTS = 8;
  private static final long AREA = SEGMENT * SEGMENTS;
  private static final int SMALLEST = 16 << 10;

  private final BenchFile file;
  private final BenchGpu gpu;
  private final List<Segment> segments = new ArrayList<>();
  private final List<HostBuffer> pins = new ArrayList<>();
  private double peakToHost;
  private double peakToGpu;

  private HostLinkBench(final BenchFile file, final BenchGpu gpu) {
    this.file = file;
    this.gpu = gpu;
  }

  static void run(final BenchFile file) {
    try (BenchGpu gpu = new BenchGpu(0, AREA);
        HostDevice host = new HostDevice()) {
      final HostLinkBench bench = new HostLinkBench(file, gpu);
      try {
        bench.pin(host);
        bench.yardsticks();
        for (final int size : new int[] {64 << 20, 4 << 20, 256 << 10, 64 << 10, SMALLEST}) {
          for (final int sms : new int[] {8, CudaDevice.DEFAULT_MULTIPROCESSORS}) {
            bench.move("to_host", size, sms, true);
            bench.move("to_gpu", size, sms, false);
          }
        }
      } finally {
        bench.pins.forEach(HostBuffer::close);
        bench.segments.forEach(Segment::close);
      }
    }
  }

  private void pin(final HostDevice host) {
    for (int i = 0; i < SEGMENTS; i++) {
      segments.add(host.allocate(SEGMENT));
    }
    final List<Segment> left = new ArrayList<>(segments);
    final Samples millis = Samples.of(() -> pinned(left.remove(0)));
    left.forEach(this::pinned);
    file.row(
        "case",
        "pin",
        "bytes",
        SEGMENT,
        "ms",
        millis.median(),
        "ms_least",
        millis.least(),
        "ms_most",
        millis.most());
  }

  private double pinned(final Segment segment) {
    final long start = System.nanoTime();
    pins.add(gpu.device.pin(segment.address(), segment.bytes()));
    return (System.nanoTime() - start) / 1e6;
  }

  private void yardsticks() {
    final PinnedMemory memory = PinnedMemory.allocate(gpu.context, AREA);
    final Samples toHost = Samples.of(() -> engine(memory, true));
    final Samples toGpu = Samples.of(() -> engine(memory, false));
    memory.close();
    peakToHost = toHost.median();
    peakToGpu = toGpu.median();
    put("copy_engine_to_host", AREA, 0, toHost, peakToHost);
    put("copy_engine_to_gpu", AREA, 0, toGpu, peakToGpu);
  }

  private double engine(final PinnedMemory memory, final boolean toHost) {
    return AREA
        / 1e6
        / gpu.millis(
            gpu.plain,
            () ->
                BenchGpu.check(
                    toHost
                        ? JCudaDriver.cuMemcpyDtoHAsync(
                            Addresses.host(memory.address()),
                            Addresses.device(gpu.source.address()),
                            AREA,
                            gpu.plain)
                        : JCudaDriver.cuMemcpyHtoDAsync(
                            Addresses.device(gpu.received.address()),
                            Addresses.host(memory.address()),
                            AREA,
                            gpu.plain)));
  }

  /** All of the area in blocks of one size, those in host memory in another order. */
  private void move(final String name, final int size, final int sms, final boolean toHost) {
    final int blocks = (int) (AREA / size);
    final int inSegment = (int) (SEGMENT / size);
    try (CopyStream stream = gpu.stream(sms)) {
      final CopyBatch batch = stream.newBatch();
      for (int block = 0; block < blocks; block++) {
        final Segment segment = segments.get(block % SEGMENTS);
        final long there = segment.address() + (long) (block / SEGMENTS % inSegment) * size;
        final long here = (long) block * size;
        if (toHost) {
          batch.add(gpu.source.address() + here, there, size);
        } else {
          batch.add(there, gpu.received.address() + here, size);
        }
      }
      stream.submit(batch);
      stream.synchronize(LIMIT);
      final Samples rate =
          Samples.of(
              () -> {
                final long start = System.nanoTime();
                stream.submit(batch);
                stream.synchronize(LIMIT);
                return (double) AREA / (System.nanoTime() - start);
              });
      put("zerohop_" + name, size, sms, rate, toHost ? peakToHost : peakToGpu);
    }
  }

  private void put(
      final String name, final long size, final int sms, final Samples rate, final double peak) {
    file.row(
        "case",
        name,
        "block_bytes",
        size,
        "sms",
        sms,
        "bytes",
        AREA,
        "gbps",
        rate.median(),
        "gbps_least",
        rate.least(),
        "gbps_most",
        rate.most(),
        "share_of_peak",
        rate.median() / peak);
  }
}
