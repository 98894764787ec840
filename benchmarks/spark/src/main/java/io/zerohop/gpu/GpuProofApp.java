package io.zerohop.gpu;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import io.zerohop.workload.Outcome;
import io.zerohop.workload.ShuffleMeter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalLong;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Shows that a shuffle's bytes do not go over the host. Each query of {@link GpuExchanges} runs
 * twice; around the second run all executors tell what CUDA has copied and what went over NVLink.
 * The same with a shuffle in files is the control: there the host must have had all bytes, both
 * ways, or the counter does not count. Exits with 1 if anything is not as it must be.
 */
public final class GpuProofApp {
  /** What may go over the host: results, cudf's metadata, counts that the CPU asks for. */
  private static final double MAX_ON_HOST = 0.01;

  /** How far NVLink's counters may be from ours. */
  private static final double NVLINK_TOLERANCE = 0.05;

  /** What a shuffle in files copies at least each way, in shares of its bytes. */
  private static final double MIN_OF_CONTROL = 0.8;

  private static final long LISTENER_LIMIT_MS = 30_000;
  private static final long SETTLE_MS = 500;
  private static final long KIB = 1024;

  private final SparkSession spark;
  private final JavaSparkContext context;
  private final String shuffle;
  private final int executors;
  private final ShuffleMeter meter = new ShuffleMeter();
  private final OverflowMeter overflow = new OverflowMeter();
  private long mark;

  private GpuProofApp(final SparkSession spark, final String shuffle, final int executors) {
    this.spark = spark;
    this.context = new JavaSparkContext(spark.sparkContext());
    this.shuffle = shuffle;
    this.executors = executors;
    spark.sparkContext().addSparkListener(meter);
    spark.sparkContext().addSparkListener(overflow);
  }

  /**
   * @param args name of the shuffle ({@code zerohop}, or any other as the control), file for the
   *     results as JSON, executors, millions of rows, map tasks, partitions, and the names of
   *     queries
   */
  public static void main(final String[] args) throws Exception {
    final SparkSession spark = SparkSession.builder().getOrCreate();
    final GpuProofApp app = new GpuProofApp(spark, args[0], Integer.parseInt(args[2]));
    final long millions = Long.parseLong(args[3]);
    spark.conf().set("spark.sql.shuffle.partitions", args[5]);
    final List<Map<String, Object>> rows = new ArrayList<>();
    int bad = 0;
    for (final String name : List.of(args).subList(6, args.length)) {
      final Map<String, Object> row = new LinkedHashMap<>();
      row.put("case", args[0]);
      row.put("query", name);
      row.put("million_rows", millions);
      row.put("partitions", Integer.parseInt(args[5]));
      row.put("executors", app.executors);
      final String query =
          GpuExchanges.query(name, millions * 1_000_000, Integer.parseInt(args[4]), args[5]);
      final List<String> problems = app.run(name, query, row);
      row.put("problems", problems);
      bad += problems.isEmpty() ? 0 : 1;
      rows.add(row);
      new ObjectMapper()
          .enable(SerializationFeature.INDENT_OUTPUT)
          .writeValue(Path.of(args[1]).toFile(), Map.of("rows", rows));
    }
    spark.stop();
    System.exit(bad == 0 ? 0 : 1);
  }

  private List<String> run(final String name, final String query, final Map<String, Object> row)
      throws Exception {
    spark.sql(query).collectAsList();
    settle();
    final CopySnapshot before = CopySnapshot.take(context, executors, mark++);
    meter.reset();
    overflow.reset();
    final long start = System.nanoTime();
    final List<Row> result = spark.sql(query).collectAsList();
    final double seconds = (System.nanoTime() - start) / 1e9;
    spark.sparkContext().listenerBus().waitUntilEmpty(LISTENER_LIMIT_MS);
    final Outcome outcome = meter.outcome(name, result.size(), seconds);
    settle();
    final CopySnapshot after = CopySnapshot.take(context, executors, mark++);
    final CopyTraffic traffic = CopyTraffic.between(before, after);
    put(row, outcome, traffic);
    row.put("result", new ArrayList<>(result).toString());
    return problems(outcome, traffic);
  }

  /** Lets Spark drop the blocks of the run before, and counters come to rest. */
  private void settle() throws InterruptedException {
    System.gc();
    Thread.sleep(SETTLE_MS);
  }

  private void put(
      final Map<String, Object> row, final Outcome outcome, final CopyTraffic traffic) {
    row.put("seconds", outcome.seconds());
    row.put("shuffle_bytes", outcome.shuffleBytes());
    row.put("local_bytes", outcome.localBytes());
    row.put("peer_bytes", outcome.peerBytes());
    row.put("staged_bytes", outcome.stagedBytes());
    row.put("overflow_bytes", overflow.spilledBytes());
    row.put("host_copy_bytes", traffic.hostBytes());
    row.put("host_copy_share", share(traffic.hostBytes(), outcome.shuffleBytes()));
    final OptionalLong nvlink = traffic.links("nvlink_rx_kib");
    row.put("nvlink_rx_bytes", nvlink.isPresent() ? nvlink.getAsLong() * KIB : null);
    row.put(
        "nvlink_share_of_peer",
        nvlink.isPresent() && outcome.peerBytes() > 0
            ? share(nvlink.getAsLong() * KIB, outcome.peerBytes())
            : null);
    for (final String name : new String[] {"pcie_rx_bytes", "pcie_tx_bytes"}) {
      final OptionalLong pcie = traffic.links(name);
      row.put(name, pcie.isPresent() ? pcie.getAsLong() : null);
    }
    row.put("copy_bytes", traffic.bytesByKind());
    row.put("dropped_records", traffic.dropped());
    row.put("copies", traffic.rows());
  }

  private static double share(final long part, final long whole) {
    return (double) part / Math.max(1, whole);
  }

  private static String text(final double share) {
    return String.format(Locale.ROOT, "%.4f", share);
  }

  private List<String> problems(final Outcome outcome, final CopyTraffic traffic) {
    final List<String> problems = new ArrayList<>();
    if (traffic.dropped() > 0) {
      problems.add(traffic.dropped() + " copies were not counted");
    }
    if (outcome.shuffleBytes() == 0) {
      problems.add("nothing was shuffled");
    } else if (shuffle.equals("zerohop")) {
      problemsOfProof(problems, outcome, traffic);
    } else {
      problemsOfControl(problems, outcome, traffic);
    }
    return problems;
  }

  private void problemsOfProof(
      final List<String> problems, final Outcome outcome, final CopyTraffic traffic) {
    if (outcome.stagedBytes() > 0) {
      problems.add(outcome.stagedBytes() + " bytes were staged");
    }
    if (overflow.spilledBytes() > 0) {
      // A kernel would read them from the host's memory, which is no copy that anybody counts.
      problems.add(overflow.spilledBytes() + " bytes found no room in GPU memory");
    }
    if (outcome.localBytes() + outcome.peerBytes() == 0) {
      problems.add("no block was read where it lies");
    }
    final double host = share(traffic.hostBytes(), outcome.shuffleBytes());
    if (host > MAX_ON_HOST) {
      problems.add("the host had " + text(host) + " of the bytes");
    }
    final OptionalLong nvlink = traffic.links("nvlink_rx_kib");
    if (nvlink.isPresent() && outcome.peerBytes() > 0) {
      final double ratio = share(nvlink.getAsLong() * KIB, outcome.peerBytes());
      if (Math.abs(ratio - 1) > NVLINK_TOLERANCE) {
        problems.add("NVLink had " + text(ratio) + " of the bytes that were read from peers");
      }
    }
  }

  private void problemsOfControl(
      final List<String> problems, final Outcome outcome, final CopyTraffic traffic) {
    for (final String kind : new String[] {"DtoH", "HtoD"}) {
      final double share = share(traffic.bytes(kind), outcome.shuffleBytes());
      if (share < MIN_OF_CONTROL) {
        problems.add("the counter saw " + text(share) + " of the bytes go " + kind);
      }
    }
  }
}
