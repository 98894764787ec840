package io.zerohop.bench;

import io.zerohop.workload.Contender;
import io.zerohop.workload.Testbed;
import io.zerohop.workload.Workload;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * How cost grows with the number of blocks: the same bytes from ever more map tasks to as many
 * partitions. Iteration 0 warms up and is kept apart.
 */
@Command(
    name = Growth.BENCH,
    mixinStandardHelpOptions = true,
    description = "fixed bytes, 10 to 3,000 map tasks x as many partitions, against sort shuffle")
final class Growth implements Callable<Integer> {
  static final String BENCH = "growth";

  private static final int ROW_BYTES = 100;

  @Mixin private BenchOptions options;

  @Option(
      names = "--mib",
      paramLabel = "MIB",
      defaultValue = "512",
      description = "what is shuffled each time (default: ${DEFAULT-VALUE})")
  private long mib;

  @Option(
      names = "--tasks",
      split = ",",
      paramLabel = "N",
      description = "numbers of map tasks (default: 10,100,1000,3000)")
  private List<Integer> tasks = List.of(10, 100, 1_000, 3_000);

  @Option(
      names = "--iterations",
      paramLabel = "N",
      defaultValue = "3",
      description = "timed rounds (default: ${DEFAULT-VALUE})")
  private int iterations;

  private Growth() {}

  @Override
  public Integer call() throws IOException {
    final List<Contender> contenders = options.contenders(Contender.ZEROHOP, Contender.SORT);
    final long rows = (mib << 20) / ROW_BYTES;
    final Measurement measurement =
        options.measurement(BENCH, Map.of("bytes", mib << 20, "iterations", iterations));
    final Path out = options.out(BENCH);
    try (Testbed testbed = options.testbed(BENCH)) {
      final Turns turns = new Turns(testbed, contenders);
      turns.start();
      for (int iteration = 0; iteration <= iterations; iteration++) {
        for (final int count : tasks) {
          turns.time(
              Workload.growth(count, rows),
              iteration,
              count + " x " + count,
              Map.of("tasks", count, "blocks", (long) count * count),
              measurement);
        }
        measurement.write(out);
      }
    }
    System.out.println("wrote " + out);
    return 0;
  }
}
