package io.zerohop.shuffle.bench;

import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.host.AvailableMemory;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.keeper.Keeper;
import io.zerohop.shuffle.transport.samenode.Keeping;
import io.zerohop.shuffle.write.MapOutput;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.ToDoubleFunction;
import java.util.stream.Stream;

/**
 * What a keeper costs those that publish, what it takes of the machine, and how fast it takes over.
 * Prints a row of JSON for each; {@code benchmarks/scripts/keeper.py} writes the file. The keeper
 * runs in a JVM with the limits that an executor gives it, without Spark.
 */
public final class KeeperBenchmark {
  private static final String APPLICATION = "app-test";
  private static final List<String> LIMITS =
      List.of(
          "-Xmx64m",
          "-Xss512k",
          "-XX:MaxMetaspaceSize=96m",
          "-XX:ReservedCodeCacheSize=32m",
          "-XX:MaxDirectMemorySize=48m",
          "-XX:+UseSerialGC",
          "-XX:TieredStopAtLevel=1");

  private static final int PAIRS = 300;
  private static final int MAPS = 400;
  private static final int PARTITIONS = 200;
  private static final int BLOCK_BYTES = 2_000;
  private static final int SEGMENTS = 1_000;
  private static final int ADOPTED = 10_000;
  private static final Duration IDLE = Duration.ofSeconds(10);

  /** Clock ticks of /proc in a second, on all that Linux runs JVMs on. */
  private static final int TICKS = 100;

  private KeeperBenchmark() {}

  /** Runs all, or one of the processes that it starts: {@code keeper} or {@code owner}. */
  public static void main(final String[] arguments) throws Exception {
    if (arguments.length == 0) {
      final Path folder = Files.createTempDirectory("zerohop-bench");
      publishing(folder.resolve("p"));
      holding(folder.resolve("h"));
      adopting(folder.resolve("a"));
      delete(folder);
    } else if (arguments[0].equals("keeper")) {
      keep(Path.of(arguments[1]));
    } else {
      own(Path.of(arguments[1]), Integer.parseInt(arguments[2]), Long.parseLong(arguments[3]));
    }
  }

  /** What killed processes have left. */
  private static void delete(final Path folder) throws IOException {
    final List<Path> files;
    try (Stream<Path> found = Files.walk(folder)) {
      files = found.sorted(Comparator.reverseOrder()).toList();
    }
    for (final Path file : files) {
      Files.delete(file);
    }
  }

  private static Process start(final List<String> limits, final String... arguments)
      throws IOException {
    final List<String> command =
        new ArrayList<>(List.of(System.getProperty("java.home") + "/bin/java"));
    command.addAll(limits);
    command.addAll(
        List.of("-cp", System.getProperty("java.class.path"), KeeperBenchmark.class.getName()));
    command.addAll(Arrays.asList(arguments));
    return new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.DISCARD).start();
  }

  private static void keep(final Path base) throws InterruptedException {
    final SocketFolder folder = ShuffleNode.socketFolder(base, APPLICATION, TestNodes.SECRET);
    try (Keeper keeper =
        Keeper.start(
            folder,
            TestNodes.SECRET,
            new Keeper.Limits(
                Long.MAX_VALUE, Duration.ofHours(1), Duration.ofHours(1), Duration.ofHours(1)),
            new CountingOnAll(),
            null,
            null,
            null,
            "",
            AvailableMemory::bytes,
            Clock.system())) {
      keeper.run();
    }
  }

  /** Counts on all outputs that it has heard of. */
  private static final class CountingOnAll implements Keeper.Driver {
    private final Set<Integer> shuffles = new HashSet<>();

    @Override
    public Set<Integer> report(final String executorId, final Map<Integer, Set<Long>> outputs) {
      if (outputs != null) {
        shuffles.addAll(outputs.keySet());
      }
      return shuffles;
    }
  }

  /** Publishes outputs, says where, and stays until it is killed. */
  private static void own(final Path base, final int outputs, final long segmentSize)
      throws IOException, InterruptedException {
    final ShuffleNode node = node(base, "owner", true, segmentSize);
    final TestBlocks.Source source = source(100);
    for (int map = 0; map < outputs; map++) {
      publish(node, source, map, false);
    }
    for (int map = 0; map < outputs; map++) {
      final int mapId = map;
      TestNodes.eventually("output " + map + " is kept", () -> isKept(node, mapId));
    }
    System.out.println(node.location().encode());
    Thread.sleep(Duration.ofMinutes(10).toMillis());
  }

  private static ShuffleNode node(
      final Path base, final String name, final boolean keeps, final long segmentSize) {
    return ShuffleNode.start(
        TestNodes.config(base, name)
            .set("keeper", keeps)
            .set("segment.size", segmentSize)
            .set("pool.size", 4L << 30)
            .set("spill.start", 1.0));
  }

  private static TestBlocks.Source source(final int blockBytes) {
    return new TestBlocks.Source(new byte[PARTITIONS][blockBytes], 32 << 10);
  }

  /** As a map task does: packs, commits and asks for the name under which it is published. */
  private static void publish(
      final ShuffleNode node, final TestBlocks.Source source, final int map, final boolean keeps)
      throws IOException {
    try (MapOutput writer = node.newMapOutput(1, map, PARTITIONS)) {
      writer.append(source);
      writer.commit();
    }
    if (keeps && !isKept(node, map)) {
      throw new IllegalStateException("an output is not kept");
    }
  }

  private static boolean isKept(final ShuffleNode node, final int map) {
    return node.keeperPort(1, map) != Keeping.NOT_KEPT;
  }

  /** What publishing all outputs takes in seconds: by the clock, and of the thread's CPU time. */
  private record Taken(double wall, double cpu) {}

  private static void publishing(final Path base) throws Exception {
    final List<Taken> with = new ArrayList<>();
    final List<Taken> without = new ArrayList<>();
    final Process keeper = start(LIMITS, "keeper", base.toString());
    final double keeperCores;
    try (ShuffleNode kept = node(base, "kept", true, 128L << 20);
        ShuffleNode plain = node(base, "plain", false, 128L << 20)) {
      awaitKeeper(kept);
      final TestBlocks.Source source = source(BLOCK_BYTES);
      final long ticks = ticks(keeper.pid());
      final long begin = System.nanoTime();
      for (int pair = -3; pair < PAIRS; pair++) {
        final boolean first = pair % 2 == 0;
        final Taken a = taken(first ? kept : plain, source, first);
        final Taken b = taken(first ? plain : kept, source, !first);
        if (pair >= 0) {
          with.add(first ? a : b);
          without.add(first ? b : a);
        }
      }
      keeperCores = cores(keeper, ticks, begin);
    } finally {
      end(keeper);
    }
    final List<Double> ratios = ratios(with, without, Taken::wall);
    final List<Double> cpuRatios = ratios(with, without, Taken::cpu);
    System.out.printf(
        Locale.ROOT,
        "{\"case\": \"publish\", \"maps\": %d, \"bytes\": %d, \"pairs\": %d, \"seconds\": %.4f,"
            + " \"seconds_without\": %.4f, \"ratio\": %.4f, \"ratio_low\": %.4f, \"ratio_high\":"
            + " %.4f, \"cpu_seconds_without\": %.4f, \"cpu_ratio\": %.4f, \"cpu_ratio_low\": %.4f,"
            + " \"cpu_ratio_high\": %.4f, \"keeper_cores\": %.4f}%n",
        MAPS,
        (long) MAPS * PARTITIONS * BLOCK_BYTES,
        PAIRS,
        quantile(with.stream().map(Taken::wall).toList(), 0.5),
        quantile(without.stream().map(Taken::wall).toList(), 0.5),
        quantile(ratios, 0.5),
        quantile(ratios, 0.25),
        quantile(ratios, 0.75),
        quantile(without.stream().map(Taken::cpu).toList(), 0.5),
        quantile(cpuRatios, 0.5),
        quantile(cpuRatios, 0.25),
        quantile(cpuRatios, 0.75),
        keeperCores);
  }

  private static List<Double> ratios(
      final List<Taken> with, final List<Taken> without, final ToDoubleFunction<Taken> of) {
    final List<Double> ratios = new ArrayList<>();
    for (int i = 0; i < with.size(); i++) {
      ratios.add(of.applyAsDouble(with.get(i)) / of.applyAsDouble(without.get(i)));
    }
    return ratios;
  }

  private static Taken taken(
      final ShuffleNode node, final TestBlocks.Source source, final boolean keeps)
      throws IOException {
    final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    final long cpu = threads.getCurrentThreadCpuTime();
    final long begin = System.nanoTime();
    for (int map = 0; map < MAPS; map++) {
      publish(node, source, map, keeps);
    }
    final Taken taken =
        new Taken(
            (System.nanoTime() - begin) / 1e9, (threads.getCurrentThreadCpuTime() - cpu) / 1e9);
    node.unregisterShuffle(1);
    return taken;
  }

  private static double quantile(final List<Double> values, final double share) {
    final List<Double> sorted = new ArrayList<>(values);
    Collections.sort(sorted);
    return sorted.get((int) Math.min(sorted.size() - 1, Math.floor(share * sorted.size())));
  }

  private static void awaitKeeper(final ShuffleNode node) {
    final TestBlocks.Source source = source(10);
    TestNodes.eventually(
        "a keeper holds the first segment",
        () -> {
          try {
            publish(node, source, 0, false); // There is a segment once something is published.
          } catch (final IOException e) {
            throw new UncheckedIOException(e);
          }
          return node.hasKeeper();
        });
    node.unregisterShuffle(1);
  }

  private static void holding(final Path base) throws Exception {
    final Process keeper = start(LIMITS, "keeper", base.toString());
    try (ShuffleNode node = node(base, "owner", true, 1 << 20)) {
      awaitKeeper(node);
      final TestBlocks.Source source = source(5_000);
      for (int map = 0; node.stats().segments() < SEGMENTS; map++) {
        publish(node, source, map, true);
      }
      Thread.sleep(IDLE.toMillis());
      final long ticks = ticks(keeper.pid());
      final long begin = System.nanoTime();
      Thread.sleep(IDLE.toMillis());
      final double cores = cores(keeper, ticks, begin);
      System.out.printf(
          Locale.ROOT,
          "{\"case\": \"hold\", \"segments\": %d, \"resident_bytes\": %d, \"idle_cores\": %.4f}%n",
          node.stats().segments(),
          residentBytes(keeper.pid()),
          cores);
      node.unregisterShuffle(1);
    } finally {
      end(keeper);
    }
  }

  /** The cores that a process took since it had so many ticks. */
  private static double cores(final Process process, final long ticks, final long begin)
      throws IOException {
    return (double) (ticks(process.pid()) - ticks) / TICKS / ((System.nanoTime() - begin) / 1e9);
  }

  private static long ticks(final long pid) throws IOException {
    final String stat = Files.readString(Path.of("/proc/" + pid + "/stat"));
    final String[] words = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
    return Long.parseLong(words[11]) + Long.parseLong(words[12]);
  }

  private static long residentBytes(final long pid) throws IOException {
    return Files.readAllLines(Path.of("/proc/" + pid + "/status")).stream()
        .filter(line -> line.startsWith("VmRSS:"))
        .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")) << 10)
        .sum();
  }

  private static void adopting(final Path base) throws Exception {
    final Process keeper = start(LIMITS, "keeper", base.toString());
    final List<Double> all = new ArrayList<>();
    try (SocketFolder folder = ShuffleNode.socketFolder(base, APPLICATION, TestNodes.SECRET)) {
      TestNodes.eventually("the keeper is there", () -> folder.isServed(Location.KEEPER));
      for (int round = 0; round < 5; round++) {
        all.add(adoption(folder, base));
      }
    } finally {
      end(keeper);
    }
    System.out.printf(
        Locale.ROOT,
        "{\"case\": \"adopt\", \"outputs\": %d, \"rounds\": %d, \"seconds\": %.3f, \"seconds_max\":"
            + " %.3f}%n",
        ADOPTED,
        all.size(),
        quantile(all, 0.5),
        Collections.max(all));
  }

  /** From the kill until what was left is served. */
  private static double adoption(final SocketFolder folder, final Path base) throws Exception {
    final Process owner =
        start(List.of(), "owner", base.toString(), "" + ADOPTED, "" + (128L << 20));
    try (BufferedReader words = owner.inputReader(StandardCharsets.UTF_8)) {
      final Location location = Location.parse(words.readLine());
      if (location == null) {
        throw new IOException("the owner has ended");
      }
      final long begin = System.nanoTime();
      owner.destroyForcibly();
      // Looks every five milliseconds.
      TestNodes.eventually(
          "what was left is served", () -> folder.isServed(Location.leftSocket(location.socket())));
      return (System.nanoTime() - begin) / 1e9;
    } finally {
      owner.destroyForcibly();
    }
  }

  private static void end(final Process process) throws InterruptedException {
    process.destroyForcibly();
    process.waitFor(1, TimeUnit.MINUTES);
  }
}
