package io.zerohop.spark.versions;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.AccumulableInfo;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerStageCompleted;
import org.apache.spark.sql.SparkSession;
import scala.collection.Iterator;

/**
 * Shuffles with Spark's UI on, and prints what the tab GPU Shuffle says of it beside what tasks
 * reported: {@code tab-app: id=... peer=... tab=...}. The shuffles of {@link ShuffleApp} come
 * first, with their own line. Writes an event log where its argument says. Written in Java, so that
 * the same classes run on either Scala version.
 */
public final class TabApp {
  private static final Duration LIMIT = Duration.ofSeconds(30);

  /** A row of the table by path: the second number is bytes. */
  private static final String ROW =
      "<td>%s</td><td sorttable_customkey=\"(\\d+)\">[^<]*</td><td sorttable_customkey=\"(\\d+)\">";

  private TabApp() {}

  public static void main(final String[] arguments) throws Exception {
    final SparkConf conf =
        new SparkConf()
            .set("spark.ui.enabled", "true")
            .set("spark.ui.port", "0")
            .set("spark.eventLog.enabled", "true")
            .set("spark.eventLog.dir", arguments[0]);
    final Bytes bytes = new Bytes();
    final Supplier<String> shuffles;
    try (SparkSession spark = SparkSession.builder().config(conf).getOrCreate()) {
      spark.sparkContext().addSparkListener(bytes);
      shuffles = ShuffleApp.run(spark);
      for (int i = 0; i < 3; i++) {
        spark
            .range(200_000)
            .selectExpr("id % 1000 AS key", "id")
            .groupBy("key")
            .sum("id")
            .collectAsList();
        spark.range(0, 200_000, 1, 4).repartition(8).count();
      }
      final String url = spark.sparkContext().uiWebUrl().get() + "/zerohop/";
      System.out.println(
          "tab-app: id="
              + spark.sparkContext().applicationId()
              + await(url, bytes, List.of("local", "peer")));
    }
    System.out.println(shuffles.get());
  }

  /** Reports and metrics come by two ways, so they are compared until they agree. */
  private static String await(final String url, final Bytes bytes, final List<String> paths)
      throws Exception {
    final long end = System.nanoTime() + LIMIT.toNanos();
    String found = "";
    boolean same = false;
    while (!same && System.nanoTime() < end) {
      Thread.sleep(200);
      final String page = get(url);
      final StringBuilder text = new StringBuilder();
      same = isAdvised(page);
      text.append(" tab.doctor=" + same);
      for (final String path : paths) {
        final long shown = bytes(page, path);
        text.append(" " + path + "=" + bytes.of(path) + " tab." + path + "=" + shown);
        same &= shown == bytes.of(path) && shown > 0;
      }
      found = text.toString();
    }
    return found;
  }

  private static String get(final String url) throws Exception {
    return HttpClient.newHttpClient()
        .send(
            HttpRequest.newBuilder(URI.create(url)).timeout(LIMIT).build(),
            HttpResponse.BodyHandlers.ofString())
        .body();
  }

  /** Whether the page has what the doctor says of this application's settings. */
  public static boolean isAdvised(final String page) {
    return page.contains("zerohop-doctor-all")
        && page.contains("nothing makes Zerohop leave shuffles to Spark");
  }

  /** Bytes over all links of a path, as the tab's page says; 0 if it does not. */
  public static long bytes(final String page, final String path) {
    final Matcher rows = Pattern.compile(String.format(Locale.ROOT, ROW, path)).matcher(page);
    return rows.results().mapToLong(row -> Long.parseLong(row.group(2))).sum();
  }

  /** The plugin's accumulators; each shuffle has its own, and stages report their sums so far. */
  private static final class Bytes extends SparkListener {
    private final Map<Long, Long> values = new ConcurrentHashMap<>();
    private final Map<Long, String> names = new ConcurrentHashMap<>();

    @Override
    public void onStageCompleted(final SparkListenerStageCompleted completed) {
      final Iterator<AccumulableInfo> infos = completed.stageInfo().accumulables().valuesIterator();
      while (infos.hasNext()) {
        final AccumulableInfo info = infos.next();
        if (info.name().isDefined() && info.name().get().startsWith("zerohop.")) {
          names.put(info.id(), info.name().get());
          values.merge(info.id(), Long.parseLong(info.value().get().toString()), Long::max);
        }
      }
    }

    long of(final String path) {
      return names.entrySet().stream()
          .filter(entry -> entry.getValue().equals("zerohop." + path + ".bytes"))
          .mapToLong(entry -> values.get(entry.getKey()))
          .sum();
    }
  }
}
