package io.zerohop.bench;

import io.zerohop.device.posix.Memory;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.commons.io.FileUtils;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * How fast one thread moves map outputs from memory to files, beside a plain sequential write of
 * the same bytes from the same memory to the same directory, in turns.
 */
@Command(
    name = Spill.BENCH,
    mixinStandardHelpOptions = true,
    description = "map outputs from memory to files, beside plain writes of the same bytes")
final class Spill implements Callable<Integer> {
  static final String BENCH = "spill";

  private static final int PLAIN_BYTES = 256 << 10;
  private static final int WARM_UPS = 10;

  /** Map outputs of so many bytes, and of a block so many in each of their batches. */
  private record Shape(int outputBytes, int blockBytes, int batches) {}

  @Option(
      names = "--local-dir",
      paramLabel = "DIR",
      defaultValue = "/tmp",
      description = "where the files go (default: ${DEFAULT-VALUE})")
  private Path localDir;

  @Option(
      names = "--output-mib",
      split = ",",
      paramLabel = "MIB",
      description = "sizes of a map output (default: 16,64)")
  private List<Integer> outputMib = List.of(16, 64);

  @Option(
      names = "--block-kib",
      split = ",",
      paramLabel = "KIB",
      description = "sizes of a block's part in one batch (default: 4,16,64,256)")
  private List<Integer> blockKib = List.of(4, 16, 64, 256);

  @Option(
      names = "--batches",
      split = ",",
      paramLabel = "N",
      description = "batches of a map output, whose parts a file puts in order (default: 1,4)")
  private List<Integer> batches = List.of(1, 4);

  @Option(
      names = "--iterations",
      paramLabel = "N",
      defaultValue = "15",
      description = "timed rounds (default: ${DEFAULT-VALUE})")
  private int iterations;

  @Mixin private RunOptions run;

  private Spill() {}

  @Override
  public Integer call() throws IOException {
    final Path target = run.out(BENCH);
    final Path dir = Files.createTempDirectory(localDir, "zerohop-spill-");
    final Map<String, Object> setting = new LinkedHashMap<>();
    setting.put("iterations", iterations);
    setting.put("bytes", ColdOutputs.BYTES);
    setting.put("local_dir", localDir.toString());
    setting.put("file_system", Files.getFileStore(dir).type());
    setting.put("plain_write_bytes", PLAIN_BYTES);
    final Measurement measurement = run.measurement(BENCH, setting);
    try (ColdOutputs outputs = ColdOutputs.start(dir, run.folder().resolve("sockets"))) {
      for (final int mib : outputMib) {
        for (final int kib : blockKib) {
          for (final int count : batches) {
            final Shape shape = new Shape(mib << 20, kib << 10, count);
            measure(outputs, dir, shape, measurement);
            measurement.write(target);
          }
        }
      }
    } finally {
      FileUtils.deleteDirectory(dir.toFile());
    }
    System.out.println("wrote " + target);
    return 0;
  }

  private void measure(
      final ColdOutputs outputs, final Path dir, final Shape shape, final Measurement measurement)
      throws IOException {
    outputs.write(shape.outputBytes, shape.blockBytes, shape.batches);
    for (int iteration = -WARM_UPS; iteration <= iterations; iteration++) {
      for (int turn = 0; turn < 2; turn++) {
        final boolean zerohop = (turn + iteration & 1) == 0;
        final Took took = zerohop ? outputs.store() : plain(outputs, dir);
        final Map<String, Object> row = new LinkedHashMap<>();
        row.put("case", zerohop ? "zerohop" : "plain_write");
        row.put("output_bytes", shape.outputBytes);
        row.put("block_bytes", shape.blockBytes);
        row.put("batches", shape.batches);
        row.put("iteration", iteration);
        row.put("bytes", outputs.bytes());
        row.put("seconds", took.seconds());
        row.put("cpu_seconds", took.cpuSeconds());
        row.put("gbps", outputs.bytes() / took.seconds() / 1e9);
        if (iteration > 0) {
          measurement.add(row);
        }
        System.out.printf(Locale.ROOT, "%d/%d %s%n", iteration, iterations, row);
      }
    }
    outputs.forget();
  }

  /** Writes the same bytes as they lie, of each output to a file; returns seconds. */
  private static Took plain(final ColdOutputs outputs, final Path dir) throws IOException {
    final Took.Start start = Took.begin();
    for (int map = 0; map < outputs.ranges().size(); map++) {
      final StandardOpenOption[] options = {
        StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE
      };
      try (FileChannel file = FileChannel.open(plainFile(dir, map), options)) {
        for (final ColdOutputs.Range range : outputs.ranges().get(map)) {
          for (long done = 0; done < range.bytes(); done += PLAIN_BYTES) {
            final int step = (int) Math.min(PLAIN_BYTES, range.bytes() - done);
            final ByteBuffer part = Memory.view(range.address() + done, step);
            while (part.hasRemaining()) {
              file.write(part);
            }
          }
        }
      }
    }
    final Took took = start.took();
    for (int map = 0; map < outputs.ranges().size(); map++) {
      Files.delete(plainFile(dir, map));
    }
    return took;
  }

  private static Path plainFile(final Path dir, final int map) {
    return dir.resolve("plain-" + map);
  }
}
