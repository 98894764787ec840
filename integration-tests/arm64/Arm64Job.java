import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** A shuffle between two executors: every sum is right, and no block took the last resort. */
public final class Arm64Job {
  private static final long NUMBERS = 20_000;
  private static final long GROUPS = 97;

  private Arm64Job() {}

  public static void main(final String[] arguments) {
    final Map<String, Long> bytes = new HashMap<>();
    final SparkSession spark =
        SparkSession.builder()
            .master("local-cluster[2,1,1024]")
            .config("spark.executor.memory", "600m")
            .config("spark.sql.shuffle.partitions", 4)
            .config("spark.sql.adaptive.enabled", false)
            .config("spark.ui.enabled", false)
            .config("spark.network.timeout", "300s")
            .config("spark.zerohop.pool.size", "64m")
            .getOrCreate();
    spark.sparkContext().addSparkListener(new PathBytes(bytes));
    final List<Row> sums =
        spark
            .range(0, NUMBERS, 1, 4)
            .selectExpr("id % " + GROUPS + " AS k", "id AS v")
            .repartition(4)
            .groupBy("k")
            .sum("v")
            .collectAsList();
    // Ends the listeners' queue as well.
    spark.stop();
    check(sums.size() == GROUPS, "groups: " + sums.size());
    for (final Row row : sums) {
      check(row.getLong(1) == sum(row.getLong(0)), "sum of " + row);
    }
    check(bytes.getOrDefault("zerohop.local.bytes", 0L) > 0, "nothing local: " + bytes);
    check(bytes.getOrDefault("zerohop.peer.bytes", 0L) > 0, "nothing of a peer: " + bytes);
    check(bytes.getOrDefault("zerohop.staged.bytes", 0L) == 0, "staged: " + bytes);
    System.out.println("arm64 job: " + System.getProperty("os.arch") + " ok, " + bytes);
  }

  private static long sum(final long group) {
    long sum = 0;
    for (long id = group; id < NUMBERS; id += GROUPS) {
      sum += id;
    }
    return sum;
  }

  private static void check(final boolean holds, final String what) {
    if (!holds) {
      throw new AssertionError(what);
    }
  }

  /** What the stages say of the ways that blocks took. */
  private static final class PathBytes extends SparkListener {
    private final Map<String, Long> bytes;

    PathBytes(final Map<String, Long> bytes) {
      this.bytes = bytes;
    }

    @Override
    public void onStageCompleted(final SparkListenerStageCompleted stage) {
      stage
          .stageInfo()
          .accumulables()
          .values()
          .foreach(
              found -> {
                final String name = found.name().getOrElse(() -> "");
                if (name.startsWith("zerohop.") && found.value().isDefined()) {
                  bytes.merge(name, Long.parseLong(found.value().get().toString()), Long::sum);
                }
                return null;
              });
    }
  }
}
