package io.zerohop.spark.keeper;

import io.zerohop.device.cuda.CudaDevice;
import io.zerohop.device.host.HostDevice;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.keeper.Keeper;
import io.zerohop.shuffle.keeper.SegmentCopier;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A short process that a keeper starts to copy GPU memory which an executor has left, see {@link
 * SegmentCopier}. Its orders come by its standard input, with the secret. It ends with the keeper,
 * whose socket it reads from.
 */
public final class GpuCopyProcess {
  private static final Logger LOG = LoggerFactory.getLogger(GpuCopyProcess.class);

  /** Who may open it may use the GPUs of this machine or container. */
  private static final Path DRIVER = Path.of("/dev/nvidiactl");

  private static final Duration SLICE = Duration.ofMillis(50);
  private static final String SOCKET = "socket";
  private static final String NAME = "name";
  private static final String GPU = "gpu";
  private static final String SEGMENTS = "segments";
  private static final String LIMIT = "limit";
  private static final String SECRET = "secret";
  private static final String COMMA = ",";
  private static final String PART_OF_GPU = "MIG-";

  /** The last of the orders: without it, who wrote them was killed meanwhile. */
  private static final String WHOLE = "whole";

  private GpuCopyProcess() {}

  /**
   * Returns what starts such processes; absent if GPUs cannot be used here.
   *
   * @param secret of the application
   * @param clock by which limits pass
   */
  static Keeper.@Nullable Copier copier(final byte[] secret, final Clock clock) {
    return CudaDevice.missingKernels() == null && opensDriver()
        ? (order, beside, limit, cancelled) -> run(order, secret, beside, limit, cancelled, clock)
        : null;
  }

  /** A container may have the file of a device that it may not open. */
  private static boolean opensDriver() {
    try {
      FileChannel.open(DRIVER, StandardOpenOption.READ, StandardOpenOption.WRITE).close();
      return true;
    } catch (final IOException e) {
      LOG.info(
          "GPUs cannot be used here, so nothing is copied from their memory: {}", e.toString());
      return false;
    }
  }

  static void run(
      final SegmentCopier.Order order,
      final byte[] secret,
      final Runnable beside,
      final Duration limit,
      final BooleanSupplier cancelled,
      final Clock clock)
      throws IOException {
    final ProcessBuilder builder =
        KeeperLaunch.copier(System.getProperty("java.class.path"), GpuCopyProcess.class.getName());
    // The other GPUs stay without a context, and the keeper may have been started to see one alone.
    // A part of a GPU has its GPU's UUID here, and can be chosen by its own name alone.
    builder
        .environment()
        .compute(
            "CUDA_VISIBLE_DEVICES",
            (key, chosen) ->
                chosen != null && chosen.startsWith(PART_OF_GPU) ? chosen : order.gpu());
    final Process process = builder.start();
    try {
      try (OutputStream out = process.getOutputStream()) {
        orders(order, secret, limit).store(out, null);
        out.write((WHOLE + "=\n").getBytes(StandardCharsets.ISO_8859_1));
      }
      beside.run();
      await(process, limit, cancelled, clock);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("the keeper ends", e);
    } finally {
      process.destroyForcibly();
    }
  }

  private static Properties orders(
      final SegmentCopier.Order order, final byte[] secret, final Duration limit) {
    final Properties orders = new Properties();
    orders.setProperty(SOCKET, order.socket().toString());
    orders.setProperty(NAME, order.name());
    orders.setProperty(GPU, order.gpu());
    orders.setProperty(
        SEGMENTS,
        order.segments().stream().map(String::valueOf).collect(Collectors.joining(COMMA)));
    orders.setProperty(LIMIT, Long.toString(limit.toMillis()));
    orders.setProperty(SECRET, Base64.getEncoder().encodeToString(secret));
    return orders;
  }

  private static void await(
      final Process process,
      final Duration limit,
      final BooleanSupplier cancelled,
      final Clock clock)
      throws IOException, InterruptedException {
    final long end = clock.in(limit);
    while (!process.waitFor(SLICE.toMillis(), TimeUnit.MILLISECONDS)) {
      if (cancelled.getAsBoolean()) {
        throw new IOException("the keeper ends");
      }
      if (clock.isOver(end)) {
        throw new IOException("it took longer than " + limit);
      }
    }
    if (process.exitValue() != 0) {
      throw new IOException("its process ended with " + process.exitValue() + ", see above");
    }
  }

  /** Copies. Ends with another status than 0 if it has not copied all. */
  public static void main(final String[] arguments) throws IOException {
    final Properties orders = new Properties();
    orders.load(System.in);
    if (orders.getProperty(WHOLE) == null) {
      throw new IOException("the orders ended with who wrote them");
    }
    final String gpu = orders.getProperty(GPU);
    final Duration limit = Duration.ofMillis(Long.parseLong(orders.getProperty(LIMIT)));
    // Also where the driver hangs, and nobody is left who ends this process.
    CompletableFuture.delayedExecutor(2 * limit.toMillis(), TimeUnit.MILLISECONDS)
        .execute(() -> Runtime.getRuntime().halt(1));
    try (HostDevice host = new HostDevice();
        CudaDevice device = new CudaDevice(0, CudaDevice.DEFAULT_MULTIPROCESSORS)) {
      if (!device.uuid().equals(gpu)) {
        throw new IOException("the driver shows " + device.uuid() + " in place of " + gpu);
      }
      final List<Long> segments =
          Stream.of(orders.getProperty(SEGMENTS).split(COMMA)).map(Long::valueOf).toList();
      SegmentCopier.copy(
          new SegmentCopier.Order(
              Path.of(orders.getProperty(SOCKET)), orders.getProperty(NAME), gpu, segments),
          device,
          host,
          Base64.getDecoder().decode(orders.getProperty(SECRET)),
          limit);
      LOG.info("copied {} segments of {} from {}", segments.size(), orders.getProperty(NAME), gpu);
    }
  }
}
