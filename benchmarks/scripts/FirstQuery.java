import java.io.IOException;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/** Asks a small query with a shuffle a few times, and says how many seconds each took. */
public final class FirstQuery {
  private FirstQuery() {}

  /** Says how long a new executor took for its first map task. */
  private static final class FirstTask extends SparkListener {
    private boolean isOver;

    @Override
    public void onTaskEnd(final SparkListenerTaskEnd event) {
      if (!isOver) {
        isOver = true;
        System.out.println("task " + event.taskInfo().duration() / 1e3);
      }
    }
  }

  /** Takes the number of queries. */
  public static void main(final String[] args) throws IOException {
    try (SparkSession spark = SparkSession.builder().appName("first query").getOrCreate()) {
      spark.sparkContext().addSparkListener(new FirstTask());
      for (int i = 0; i < Integer.parseInt(args[0]); i++) {
        final long start = System.nanoTime();
        spark.range(0, 1000, 1, 4).repartition(4, functions.col("id")).count();
        System.out.println("query " + (System.nanoTime() - start) / 1e9);
      }
    }
  }
}
