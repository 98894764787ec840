package io.zerohop.spark.compat;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Message;
import java.io.IOException;
import java.lang.reflect.Modifier;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/**
 * The table has all that our classes link of Spark, each with the features that need it; and a
 * Spark without one of them lacks those features alone.
 */
class SparkProbeTest {
  private static final Path RESOURCE =
      Path.of("src/main/resources/io/zerohop/spark/compat", SparkProbe.LINKS);
  private static final String SPARK = "org/apache/spark/";
  private static final String OURS = "io/zerohop/spark/";

  /** Loaded only after a look at what it links; see {@code RowChecksums}. */
  private static final String SINCE_41 = OURS + "rows/RowsWriter$RowChecksums$Since41";

  /** The doctor makes a finding of what it cannot link, and the proof a failed step. */
  private static final List<String> COMMANDS =
      List.of(OURS + "doctor/", OURS + "Doctor", OURS + "compat/PlacedData", OURS + "rdmaproof/");

  /** Classes of ours that belong to a feature; all others belong to shuffles as such. */
  private static final Map<SparkFeature, List<String>> USERS = users();

  private static Map<SparkFeature, List<String>> users() {
    final Map<SparkFeature, List<String>> users = new EnumMap<>(SparkFeature.class);
    users.put(SparkFeature.SENT, List.of("sent/", "compat/SparkLinks$Peers"));
    users.put(SparkFeature.UCX, List.of("control/"));
    users.put(SparkFeature.COALESCE, List.of("rapids/setup/CoalesceRule"));
    users.put(SparkFeature.GPU, List.of("rapids/"));
    users.put(
        SparkFeature.SQL_ROWS,
        List.of(
            "rows/RowsWriter$UnsafeRowAppender",
            "rows/RowsReader$UnsafeRowRecords",
            "rows/RowsReader$UnsafeRows"));
    users.put(
        SparkFeature.QUERIES,
        List.of("driver/LiveShuffles$FinishedShuffles", "compat/SparkLinks$Jobs"));
    users.put(
        SparkFeature.KEEPER,
        List.of("keeper/KeptOutputs", "keeper/KeeperProcess", "conf/ReliableShuffleIo"));
    users.put(
        SparkFeature.TAB,
        List.of("ui/", "compat/SparkPages", "HistoryListeners212", "ZerohopHistoryPlugin"));
    return users;
  }

  private static SparkFeature featureOf(final String user) {
    if (!user.startsWith(OURS)) {
      return SparkFeature.GPU; // Beside RAPIDS' own classes.
    }
    final String name = user.substring(OURS.length());
    return USERS.entrySet().stream()
        .filter(entry -> entry.getValue().stream().anyMatch(name::startsWith))
        .map(Map.Entry::getKey)
        .findFirst()
        .orElse(SparkFeature.SHUFFLE);
  }

  private static boolean isProbed(final String user) {
    return !user.equals(SINCE_41) && COMMANDS.stream().noneMatch(user::startsWith);
  }

  private static List<String> linksOf(final Path classes) throws IOException {
    final Map<String, Set<SparkFeature>> links = new TreeMap<>();
    for (final ConstantPool.Reference reference : ConstantPool.of(classes)) {
      if (reference.owner().startsWith(SPARK) && isProbed(reference.user())) {
        add(links, reference.owner() + reference.member(), reference.user());
      }
    }
    for (final String user : usersOf(classes)) {
      if (isCalledBySpark(user)) {
        add(links, user, user);
      }
    }
    final List<String> lines = new ArrayList<>();
    links.forEach(
        (link, features) -> {
          // What shuffles as such need, nothing else works without.
          final Set<SparkFeature> needing =
              features.contains(SparkFeature.SHUFFLE) ? EnumSet.of(SparkFeature.SHUFFLE) : features;
          needing.forEach(feature -> lines.add(feature + " " + link));
        });
    lines.sort(null);
    return lines;
  }

  private static void add(
      final Map<String, Set<SparkFeature>> links, final String link, final String user) {
    final int end = link.indexOf(' ') < 0 ? link.length() : link.indexOf(' ');
    links
        .computeIfAbsent(
            link.substring(0, end).replace('/', '.') + link.substring(end),
            key -> EnumSet.noneOf(SparkFeature.class))
        .add(featureOf(user));
  }

  private static List<String> usersOf(final Path classes) throws IOException {
    return ConstantPool.of(classes).stream()
        .map(ConstantPool.Reference::user)
        .filter(user -> user.startsWith(OURS) && isProbed(user))
        .distinct()
        .toList();
  }

  /**
   * Whether it is a class of which there are objects, and that Spark knows by a type of its own.
   */
  private static boolean isCalledBySpark(final String user) {
    try {
      final Class<?> type =
          Class.forName(user.replace('/', '.'), false, SparkProbe.class.getClassLoader());
      return !Modifier.isAbstract(type.getModifiers()) && isOfSpark(type);
    } catch (final ClassNotFoundException e) {
      throw new AssertionError(e);
    }
  }

  private static boolean isOfSpark(final Class<?> type) {
    return type != null
        && (type.getName().startsWith(SPARK.replace('/', '.'))
            || isOfSpark(type.getSuperclass())
            || Arrays.stream(type.getInterfaces()).anyMatch(SparkProbeTest::isOfSpark));
  }

  @Test
  void theTableHasAllThatOurClassesLinkOfSpark() throws IOException, URISyntaxException {
    final Path classes =
        Path.of(SparkProbe.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    final List<String> links = linksOf(classes);
    if (Boolean.getBoolean("zerohop.docs.write")) {
      Files.createDirectories(RESOURCE.getParent());
      Files.write(RESOURCE, links);
    }
    assertThat(Files.readAllLines(RESOURCE))
        .as("%s is stale; run the tests with -Dzerohop.docs.write=true", RESOURCE)
        .isEqualTo(links);
    assertThat(links)
        .contains(
            "SHUFFLE org.apache.spark.shuffle.IndexShuffleBlockResolver getBlockData"
                + " (Lorg/apache/spark/storage/BlockId;Lscala/Option;)"
                + "Lorg/apache/spark/network/buffer/ManagedBuffer;",
            "SHUFFLE io.zerohop.spark.staged.ZerohopBlockResolver");
  }

  @Test
  void thisSparkHasAll() {
    for (final SparkFeature feature : SparkFeature.values()) {
      assertThat(SparkProbe.here().missing(feature)).as("%s", feature).isNull();
      assertThat(SparkProbe.here().sentence(feature)).isNull();
    }
  }

  /** Each line's class or member is taken away in turn, unless Scala or Java declares it, too. */
  @Test
  void whatIsTakenAwayIsMissed() throws ClassNotFoundException {
    int taken = 0;
    for (final LinkedMember link : LinkedMember.read(SparkProbe.class, SparkProbe.LINKS)) {
      if (!isOfOthers(Class.forName(link.owner(), false, getClass().getClassLoader()), link)) {
        assertThat(link.isIn(new SparkWithout(link.owner(), link.member())))
            .as("%s", link)
            .isFalse();
        taken++;
      }
    }
    assertThat(taken).isGreaterThan(400);
  }

  private static boolean isOfOthers(final Class<?> type, final LinkedMember link) {
    if (type == null) {
      return false;
    }
    final boolean declares =
        !type.getName().startsWith("org.apache.spark.")
            && !link.member().equals("<init>")
            && Arrays.stream(type.getDeclaredMethods())
                .anyMatch(method -> method.getName().equals(link.member()));
    return declares
        || isOfOthers(type.getSuperclass(), link)
        || Arrays.stream(type.getInterfaces()).anyMatch(parent -> isOfOthers(parent, link));
  }

  @Test
  void onlyTheFeaturesThatNeedItGoWithIt() {
    final String transport = "org.apache.spark.network.TransportContext";
    assertLost(new SparkWithout(transport, "createServer"), "createServer", SparkFeature.UCX);
    assertLost(
        new SparkWithout(transport, "createClientFactory"),
        "createClientFactory",
        SparkFeature.SENT,
        SparkFeature.UCX);
    assertLost(
        new SparkWithout("org.apache.spark.sql.catalyst.expressions.UnsafeRow", "pointTo"),
        "UnsafeRow pointTo",
        SparkFeature.SQL_ROWS);
    assertLost(
        new SparkWithout("org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd", ""),
        "SparkListenerSQLExecutionEnd",
        SparkFeature.QUERIES);
    assertLost(
        new SparkWithout("org.apache.spark.ui.SparkUI", "attachTab"),
        "SparkUI attachTab",
        SparkFeature.TAB);
    assertLost(
        new SparkWithout("org.apache.spark.sql.execution.SparkPlan", "makeCopy"),
        "SparkPlan makeCopy",
        SparkFeature.COALESCE,
        SparkFeature.GPU);
    assertLost(
        new SparkWithout(
            "org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec", "mapStats"),
        "ShuffleQueryStageExec mapStats",
        SparkFeature.COALESCE);
    assertLost(
        SparkWithout.declared("org.apache.spark.shuffle.BlockStoreShuffleReader", "<init>"),
        "BlockStoreShuffleReader <init>",
        SparkFeature.SHUFFLE);
  }

  /** Looked up by name, when a class of ours is initialised. */
  @Test
  void whatIsBoundByNameIsMissedToo() {
    assertLost(
        SparkWithout.declared("org.apache.spark.scheduler.MapStatus$", "apply"),
        "MapStatus.apply",
        SparkFeature.SHUFFLE);
    assertLost(
        SparkWithout.declared("org.apache.spark.storage.BlockManagerMaster", "getPeers"),
        "getPeers",
        SparkFeature.SENT);
    assertLost(
        SparkWithout.declared("org.apache.spark.scheduler.SparkListenerJobStart", "stageInfos"),
        "stageInfos",
        SparkFeature.QUERIES);
  }

  /** As if a vendor's interface asked for a method more. */
  @Test
  void aMethodThatWeDoNotImplementIsMissed() {
    final String ours = "io.zerohop.spark.staged.ZerohopBlockResolver";
    assertLost(SparkWithout.declared(ours, "getBlockData"), ours, SparkFeature.SHUFFLE);
  }

  /**
   * Checks that some features are lost, and no others.
   *
   * @param named what their sentences name
   */
  private static void assertLost(
      final ClassLoader spark, final String named, final SparkFeature... lost) {
    final SparkProbe probe = SparkProbe.of(spark);
    for (final SparkFeature feature : SparkFeature.values()) {
      if (List.of(lost).contains(feature)) {
        assertThat(probe.has(feature)).as("%s without %s", feature, named).isFalse();
        final Message sentence = probe.sentence(feature);
        assertThat(sentence.what()).contains(feature.words(), feature.fallback());
        assertThat(sentence.where()).startsWith("Spark ");
        assertThat(sentence.why()).contains(named);
      } else {
        assertThat(probe.missing(feature)).as("%s without %s", feature, named).isNull();
      }
    }
  }
}
