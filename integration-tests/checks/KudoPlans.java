import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.concat;
import static org.apache.spark.sql.functions.count;
import static org.apache.spark.sql.functions.lit;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import scala.collection.Iterator;
import scala.reflect.ClassTag$;

/**
 * Holds plans that RAPIDS makes, with its own jar and without a GPU, against what KudoRule is to make
 * of them. Nothing of them runs. For kudo_plans.sh.
 */
public final class KudoPlans {
  private static final String KEY = "spark.zerohop.rapids.kudo.enabled";
  private static final String CHECKSUMS = "spark.sql.shuffle.orderIndependentChecksum.enabled";
  private static int failures;

  private KudoPlans() {}

  public static void main(final String[] arguments) throws Exception {
    final SparkConf conf = new SparkConf()
        .setMaster("local[1]")
        .setAppName("plans")
        .set("spark.ui.enabled", "false")
        .set("spark.shuffle.manager", "io.zerohop.spark.ZerohopShuffleManager")
        .set("spark.plugins", "com.nvidia.spark.SQLPlugin,io.zerohop.spark.ZerohopPlugin");
    Class.forName("io.zerohop.spark.rapids.setup.RapidsMode").getMethod("prepare", SparkConf.class).invoke(null, conf);
    conf.set("spark.plugins", "") // They would start RAPIDS' executor, which wants a GPU.
        .set("spark.sql.extensions", conf.get("spark.sql.extensions") + ",com.nvidia.spark.rapids.SQLExecPlugin")
        .set("spark.rapids.sql.explain", "NONE")
        .set("spark.sql.autoBroadcastJoinThreshold", "-1")
        .set("spark.sql.adaptive.enabled", "false");
    final SparkSession spark = SparkSession.builder().sparkContext(new SparkContext(conf)).getOrCreate();
    Class.forName("io.zerohop.spark.rapids.setup.RapidsLatch").getMethod("close", SparkEnv.class).invoke(null, SparkEnv.get());

    final Dataset<Row> rows = spark.range(0, 1000, 1, 4)
        .select(col("id"), col("id").mod(97).as("k"), concat(lit("x-"), col("id")).as("s"));
    expect("hash", rows.repartition(24, col("k")), "ZerohopHashPartitioning");
    expect("round robin", rows.repartition(24), "ZerohopRoundRobinPartitioning");
    expect("group by", rows.groupBy("s").agg(count("*")), "ZerohopHashPartitioning");
    expect("join", rows.join(rows.withColumnRenamed("id", "other"), "k"), "ZerohopHashPartitioning", "ZerohopHashPartitioning");
    final Dataset<Row> counts = rows.groupBy("s").agg(count("*").as("n"));
    final Dataset<Row> twice = counts.join(counts.withColumnRenamed("n", "m"), "s");
    expect("an exchange that is used twice", twice, "ZerohopHashPartitioning");
    tell(twice.queryExecution().executedPlan().toString().contains("ReusedExchange"), "it is there once");
    expect("range", rows.orderBy("s"), "ZerohopRangePartitioning");
    expect("range above an exchange", rows.groupBy("s").agg(count("*")).orderBy("s"), "GpuRangePartitioning", "ZerohopHashPartitioning");
    expect("to one", rows.repartition(1), "GpuSinglePartitioning$");
    expect("a struct without members", rows.selectExpr("named_struct() AS e", "k").repartition(24, col("k")), "GpuHashPartitioning");
    spark.conf().set(KEY, "false");
    expect("switched off", rows.repartition(24, col("k")), "GpuHashPartitioning");
    spark.conf().unset(KEY);
    spark.conf().set(CHECKSUMS, "true");
    expect("row checksums", rows.repartition(24, col("k")), "ZerohopHashPartitioning");
    spark.conf().unset(CHECKSUMS);
    travels(partitionings(rows.repartition(24, col("k"))).get(0));
    travels(partitionings(rows.repartition(24)).get(0));
    travels(partitioner(partitionings(rows.orderBy("s")).get(0), rows.queryExecution().executedPlan().output()));
    spark.stop();
    System.exit(failures == 0 ? 0 : 1);
  }

  private static void expect(final String what, final Dataset<Row> query, final String... expected) {
    final List<String> found = partitionings(query).stream().map(one -> one.getClass().getSimpleName()).toList();
    tell(found.equals(List.of(expected)), what + ": " + found);
  }

  /**
   * A task carries it to an executor, which has the same again, or RAPIDS' own as it was planned if it
   * cannot convert it. Spark serialises tasks in a thread without a session.
   */
  private static void travels(final Object partitioning) throws Exception {
    final Object[] found = new Object[2];
    final Thread thread = new Thread(() -> {
      SparkSession.clearActiveSession();
      SparkSession.clearDefaultSession();
      try {
        final SerializerInstance serializer = SparkEnv.get().closureSerializer().newInstance();
        found[0] = serializer.deserialize(
            serializer.serialize(partitioning, ClassTag$.MODULE$.Any()), partitioning.getClass().getClassLoader(), ClassTag$.MODULE$.Any());
        final Method replace = partitioning.getClass().getDeclaredMethod("writeReplace");
        replace.setAccessible(true);
        final Object portable = replace.invoke(partitioning);
        final Method original = portable.getClass().getDeclaredMethod("partitioning");
        original.setAccessible(true);
        found[1] = original.invoke(portable);
      } catch (final ReflectiveOperationException e) {
        throw new IllegalStateException(e);
      }
    });
    thread.start();
    thread.join();
    tell(found[0] != null && found[0].getClass() == partitioning.getClass() && isSame(found[0], partitioning), "travels: " + found[0]);
    tell(found[1] != null && uses(found[1], "usesGPUShuffle") && !uses(found[1], "usesKudoGPUSlicing"), "as RAPIDS' own: " + found[1]);
    tell(uses(partitioning, "usesGPUShuffle") && !uses(partitioning, "usesKudoGPUSlicing"), "feeds GPU shuffles");
  }

  /** A range partitioner, as one is bound when its exchange runs, without bounds. */
  private static Object partitioner(final Object partitioning, final Object attributes) throws ReflectiveOperationException {
    final ClassLoader loader = partitioning.getClass().getClassLoader();
    final Class<?> sorter = Class.forName("com.nvidia.spark.rapids.GpuSorter", true, loader);
    final Class<?> ours = Class.forName("com.nvidia.spark.rapids.ZerohopRangePartitioning$Partitioner", true, loader);
    final Class<?> seq = Class.forName("scala.collection.immutable.Seq");
    final Object ordering = partitioning.getClass().getMethod("expressions").invoke(partitioning);
    final Object noMetrics = Class.forName("scala.collection.immutable.Map$").getField("MODULE$").get(null);
    final Object metrics = noMetrics.getClass().getMethod("empty").invoke(noMetrics);
    return ours.getConstructors()[0].newInstance(
        new org.apache.spark.sql.catalyst.InternalRow[0],
        sorter.getConstructor(seq, seq, Class.forName("scala.collection.immutable.Map")).newInstance(ordering, attributes, metrics),
        24);
  }

  /** A range partitioner's sorter equals itself only. */
  private static boolean isSame(final Object one, final Object other) {
    return one.equals(other) || one.getClass().getSimpleName().equals("Partitioner");
  }

  private static boolean uses(final Object partitioning, final String what) throws ReflectiveOperationException {
    return (boolean) partitioning.getClass().getMethod(what).invoke(partitioning);
  }

  private static void tell(final boolean right, final String what) {
    failures += right ? 0 : 1;
    System.out.println((right ? "ok    " : "WRONG ") + what);
  }

  private static List<Object> partitionings(final Dataset<Row> query) {
    final List<Object> found = new ArrayList<>();
    collect(query.queryExecution().executedPlan(), found);
    return found;
  }

  private static void collect(final SparkPlan plan, final List<Object> to) {
    if (plan.getClass().getSimpleName().equals("GpuShuffleExchangeExec")) {
      to.add(plan.productElement(0));
    }
    for (final Iterator<SparkPlan> child = plan.children().iterator(); child.hasNext(); ) {
      collect(child.next(), to);
    }
  }
}
