package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxMemory;
import io.zerohop.shuffle.transport.ucx.engine.UcxLoader;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * One-sided gets through our engine beside those of ucx_perftest, over TCP on the loopback of this
 * machine: one get after the other, of the same size, with the same libucx, in turns. Prints the
 * rows of a measurement.
 *
 * <pre>
 *  mvn -B -q -pl benchmarks/micro -am -Pbenchmarks -DskipTests test \
 *    -Dbenchmarks.main=io.zerohop.shuffle.transport.ucx.UcxBenchmark
 * </pre>
 *
 * <p>Needs ucx_perftest (Debian: ucx-utils). Arguments: number of rounds.
 */
public final class UcxBenchmark {
  private static final int[] SIZES = {1 << 20, 4 << 20, 16 << 20};
  private static final int MOST = 16 << 20;
  private static final long BYTES_A_RUN = 256L << 20;
  private static final int PERFTEST_PORT = 13_571;
  private static final long LIMIT_SECONDS = 60;
  private static final Duration ALWAYS = Duration.ofDays(1);

  private UcxBenchmark() {}

  public static void main(final String[] args) throws Exception {
    if (args.length > 0 && args[0].equals("owner")) {
      own();
    } else if (args.length > 0 && args[0].equals("reader")) {
      read(args[1], Integer.parseInt(args[2]));
    } else {
      compare(args.length > 0 ? Integer.parseInt(args[0]) : 7);
    }
  }

  private static void compare(final int rounds) throws Exception {
    final Map<String, List<Double>> rates = new LinkedHashMap<>();
    for (int round = 0; round < rounds; round++) {
      for (final int size : SIZES) {
        for (final String way : List.of("zerohop_get", "zerohop_get_polling")) {
          add(rates, way, size, ours(way, size));
        }
        add(rates, "ucx_perftest_get", size, perftest(size));
      }
    }
    final List<String> rows = new ArrayList<>();
    rates.forEach((key, values) -> rows.add(row(key.split("/"), values, rates)));
    System.out.println(String.join(",\n", rows));
  }

  private static void add(
      final Map<String, List<Double>> rates, final String way, final int size, final double rate) {
    rates.computeIfAbsent(way + "/" + size, first -> new ArrayList<>()).add(rate);
  }

  private static String row(
      final String[] key, final List<Double> values, final Map<String, List<Double>> all) {
    final double yardstick = median(all.get("ucx_perftest_get/" + key[1]));
    final double polling = median(all.get("zerohop_get_polling/" + key[1]));
    return String.format(
        Locale.ROOT,
        "  {\"case\": \"%s\", \"bytes\": %s, \"gbps\": %.3f, \"gbps_least\": %.3f, \"gbps_most\":"
            + " %.3f, \"rounds\": %d, \"share_of_perftest\": %.3f, \"share_of_polling\": %.3f}",
        key[0],
        key[1],
        median(values),
        values.stream().mapToDouble(x -> x).min().orElseThrow(),
        values.stream().mapToDouble(x -> x).max().orElseThrow(),
        values.size(),
        median(values) / yardstick,
        median(values) / polling);
  }

  private static double median(final List<Double> values) {
    final double[] sorted = values.stream().mapToDouble(x -> x).sorted().toArray();
    return (sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2;
  }

  private static double ours(final String way, final int size) throws Exception {
    final Process owner = java("owner");
    try {
      final String target = line(owner);
      final Process reader = java("reader", target, String.valueOf(size), way);
      try {
        return Double.parseDouble(line(reader));
      } finally {
        end(reader);
      }
    } finally {
      end(owner);
    }
  }

  private static Process java(final String... args) throws IOException {
    final List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("-Dspin=" + Arrays.asList(args).contains("zerohop_get_polling"));
    command.addAll(List.of("-cp", System.getProperty("java.class.path")));
    command.add(UcxBenchmark.class.getName());
    command.addAll(List.of(args));
    return start(command);
  }

  private static Process start(final List<String> command) throws IOException {
    final ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().put("UCX_TLS", "tcp,self");
    builder.environment().put("UCX_NET_DEVICES", "lo");
    return builder.redirectError(ProcessBuilder.Redirect.DISCARD).start();
  }

  private static String line(final Process process) throws IOException {
    final String line =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8))
            .readLine();
    if (line == null) {
      throw new IOException("a process ended without an answer");
    }
    return line;
  }

  private static void end(final Process process) throws InterruptedException {
    process.destroy();
    if (!process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)) {
      process.destroyForcibly();
    }
  }

  private static double perftest(final int size) throws Exception {
    final List<String> server = List.of("ucx_perftest", "-p", String.valueOf(PERFTEST_PORT), "-f");
    final Process owner = start(server);
    try {
      Thread.sleep(500);
      final List<String> client = new ArrayList<>(server);
      client.addAll(List.of("127.0.0.1", "-t", "ucp_get", "-s", String.valueOf(size)));
      client.addAll(List.of("-n", String.valueOf(BYTES_A_RUN / size), "-w", "4"));
      final Process reader = start(client);
      final String all = new String(reader.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      final String last = all.lines().reduce((a, b) -> b).orElse("");
      // Of the last line the sixth column is the overall bandwidth in MiB a second.
      final String[] columns = last.trim().split("\\s+");
      return Double.parseDouble(columns[columns.length - 3]) * (1 << 20) / 1e9;
    } finally {
      end(owner);
    }
  }

  private static void own() throws Exception {
    final UnsafeBuffer from = new UnsafeBuffer(ByteBuffer.allocateDirect(MOST));
    from.setMemory(0, MOST, (byte) 1);
    try (UcxEngine engine = TestUcx.start();
        UcxMemory memory = engine.register(Tier.HOST, from.addressOffset(), MOST)) {
      final HexFormat hex = HexFormat.of();
      System.out.println(
          hex.formatHex(engine.address())
              + ":"
              + hex.formatHex(memory.key())
              + ":"
              + from.addressOffset());
      System.in.readAllBytes(); // Until the one who started it ends it.
    }
  }

  private static void read(final String target, final int size) throws Exception {
    final String[] parts = target.split(":");
    final byte[] key = HexFormat.of().parseHex(parts[1]);
    final long address = Long.parseLong(parts[2]);
    final UnsafeBuffer to = new UnsafeBuffer(ByteBuffer.allocateDirect(MOST));
    try (UcxEngine engine =
            Boolean.getBoolean("spin")
                ? UcxLoader.start(null, null, () -> {}, ALWAYS, Clock.system())
                : TestUcx.start();
        UcxEndpoint owner = engine.connect(HexFormat.of().parseHex(parts[0]), lost -> {})) {
      for (int i = 0; i < 4; i++) {
        get(owner, key, address, to.addressOffset(), size);
      }
      final long count = BYTES_A_RUN / size;
      final long begin = System.nanoTime();
      for (long i = 0; i < count; i++) {
        get(owner, key, address, to.addressOffset(), size);
      }
      System.out.println((double) count * size / (System.nanoTime() - begin));
    }
  }

  private static void get(
      final UcxEndpoint owner, final byte[] key, final long from, final long to, final int size)
      throws Exception {
    final CompletableFuture<String> end = new CompletableFuture<>();
    owner.get(key, from, to, size, null, failure -> end.complete(failure == null ? "" : failure));
    final String failure = end.get(LIMIT_SECONDS, TimeUnit.SECONDS);
    if (!failure.isEmpty()) {
      throw new IOException(failure);
    }
  }
}
