import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.functions;

/**
 * Binds all that Zerohop uses of RAPIDS against RAPIDS' own classes in their shim loader, decides as
 * a driver does, and closes the latch in a local Spark, without a GPU. Prints a line for each
 * signature, and one of JSON with what came of it. For rapids_cells.sh: RapidsBind SCALA CUDA.
 */
public final class RapidsBind {
  private static final String API = "io.zerohop.spark.rapids.api.";
  private static final String SETUP = "io.zerohop.spark.rapids.setup.";

  private RapidsBind() {}

  public static void main(final String[] arguments) throws Exception {
    final Properties version = new Properties();
    try (InputStream in = RapidsBind.class.getResourceAsStream("/rapids4spark-version-info.properties")) {
      version.load(in);
    }
    final Class<?> shims = Class.forName("com.nvidia.spark.rapids.ShimLoader");
    final ClassLoader loader = (ClassLoader) shims.getMethod("getShimClassLoader").invoke(null);
    final String manager = (String) shims.getMethod("getRapidsShuffleManagerClass").invoke(null);
    final List<String> missing = new ArrayList<>();
    final int wanted = signatures(loader, missing);

    final SparkConf conf = new SparkConf()
        .setMaster("local[1]")
        .setAppName("bind")
        .set("spark.ui.enabled", "false")
        .set("spark.driver.host", "localhost")
        .set("spark.shuffle.manager", "io.zerohop.spark.ZerohopShuffleManager")
        .set("spark.plugins", "com.nvidia.spark.SQLPlugin,io.zerohop.spark.ZerohopPlugin");
    Class.forName(SETUP + "RapidsMode").getMethod("prepare", SparkConf.class).invoke(null, conf);
    final boolean taken = conf.get("spark.rapids.shuffle.mode", "").equals("CACHE_ONLY");
    final boolean kudo = taken && goesWith("KUDO", conf);
    final String partitioning = taken ? partitioning(conf) : "";
    final boolean converts = partitioning.equals("ZerohopHashPartitioning");
    System.out.printf(
        Locale.ROOT, "ROW {\"case\": \"bind\", \"rapids\": \"%s\", \"scala\": \"%s\", \"cuda\": %s, \"spark\": \"%s\", \"manager\": \"%s\","
            + " \"wanted\": %d, \"found\": %d, \"without\": %s, \"taken\": %b, \"kudo\": %b, \"exchange\": \"%s\", \"bound\": %b}%n",
        version.getProperty("version"), arguments[0], arguments[1], org.apache.spark.package$.MODULE$.SPARK_VERSION(), manager,
        wanted, wanted - missing.size(), json(features(missing)), taken, kudo, partitioning,
        taken && converts == kudo && !features(missing).contains("SHUFFLE"));
    System.exit(0);
  }

  /** Whether the driver has decided for a feature of RAPIDS. */
  @SuppressWarnings({"unchecked", "rawtypes"})
  private static boolean goesWith(final String feature, final SparkConf conf) throws Exception {
    final Class type = Class.forName(API + "RapidsMember$RapidsFeature");
    return (boolean) Class.forName(SETUP + "RapidsMode")
        .getMethod("has", SparkConf.class, type)
        .invoke(null, conf, Enum.valueOf(type, feature));
  }

  /** How many there are; those that are missing go to a list as FEATURE OWNER MEMBER DESCRIPTOR. */
  private static int signatures(final ClassLoader loader, final List<String> missing) throws Exception {
    int count = 0;
    final Class<?> member = Class.forName(API + "RapidsMember");
    final Method find = member.getDeclaredMethod("find", ClassLoader.class);
    find.setAccessible(true);
    for (final Object one : member.getEnumConstants()) {
      final String line = member.getMethod("feature").invoke(one) + " " + member.getMethod("signature").invoke(one);
      boolean isThere = true;
      try {
        find.invoke(one, loader);
      } catch (final ReflectiveOperationException e) {
        isThere = false;
      }
      count += tell(line, isThere, missing);
    }
    final Class<?> link = Class.forName(API + "RapidsProbe$Link");
    final Method of = link.getDeclaredMethod("of", String.class);
    final Method isIn = link.getDeclaredMethod("isIn", ClassLoader.class);
    of.setAccessible(true);
    isIn.setAccessible(true);
    try (BufferedReader links = new BufferedReader(
        new InputStreamReader(Class.forName(API + "RapidsProbe").getResourceAsStream("links.txt"), java.nio.charset.StandardCharsets.UTF_8))) {
      for (final String line : links.lines().toList()) {
        count += tell(line, (boolean) isIn.invoke(of.invoke(null, line), loader), missing);
      }
    }
    return count;
  }

  private static int tell(final String line, final boolean isThere, final List<String> missing) {
    System.out.println("SIGNATURE " + (isThere ? "+ " : "- ") + line);
    if (!isThere) {
      missing.add(line);
    }
    return 1;
  }

  private static TreeSet<String> features(final List<String> missing) {
    final TreeSet<String> features = new TreeSet<>();
    missing.forEach(line -> features.add(line.split(" ")[0]));
    return features;
  }

  private static String json(final TreeSet<String> words) {
    return words.isEmpty() ? "[]" : "[\"" + String.join("\", \"", words) + "\"]";
  }

  /** What RAPIDS plans an exchange with, in a driver whose latch is closed. */
  private static String partitioning(final SparkConf conf) throws Exception {
    conf.set("spark.plugins", "") // They would start RAPIDS' executor, which wants a GPU.
        .set("spark.sql.extensions", conf.get("spark.sql.extensions") + ",com.nvidia.spark.rapids.SQLExecPlugin")
        .set("spark.rapids.sql.explain", "NONE")
        .set("spark.sql.shuffle.orderIndependentChecksum.enabled", "false")
        .set("spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch", "false")
        .set("spark.sql.adaptive.enabled", "false");
    final SparkSession spark = SparkSession.builder().sparkContext(new SparkContext(conf)).getOrCreate();
    Class.forName(SETUP + "RapidsLatch").getMethod("close", SparkEnv.class).invoke(null, SparkEnv.get());
    final var plan = spark.range(0, 1000, 1, 4).repartition(24, functions.col("id")).queryExecution().executedPlan();
    final String found = exchange(plan);
    spark.stop();
    return found;
  }

  private static String exchange(final org.apache.spark.sql.execution.SparkPlan plan) {
    if (plan.getClass().getSimpleName().equals("GpuShuffleExchangeExec")) {
      return plan.productElement(0).getClass().getSimpleName();
    }
    for (final var child = plan.children().iterator(); child.hasNext(); ) {
      final String found = exchange(child.next());
      if (!found.isEmpty()) {
        return found;
      }
    }
    return "";
  }
}
