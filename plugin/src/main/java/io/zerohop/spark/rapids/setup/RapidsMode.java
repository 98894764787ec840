package io.zerohop.spark.rapids.setup;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.cuda.CudaDriver;
import io.zerohop.spark.compat.SparkFeature;
import io.zerohop.spark.compat.SparkProbe;
import io.zerohop.spark.conf.Activation;
import io.zerohop.spark.conf.Plugins;
import io.zerohop.spark.conf.RapidsKeys;
import io.zerohop.spark.conf.ZerohopConf;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.log.UnusableException;
import io.zerohop.spark.rapids.api.RapidsMember.RapidsFeature;
import io.zerohop.spark.rapids.api.RapidsProbe;
import io.zerohop.spark.sizing.PoolSizing;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.apache.spark.network.util.JavaUtils;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Decides whether RAPIDS may pass its batches to Zerohop in GPU memory. Decided once, on the
 * driver, before RAPIDS reads its configuration: afterwards it is too late, since its planning
 * follows the mode that is set then. How much of it is each executor's own decision, by its own
 * GPU, before RAPIDS starts there and sizes its memory pool; the driver may have another GPU, or
 * none.
 */
public final class RapidsMode {
  private static final Logger LOG = LoggerFactory.getLogger(RapidsMode.class);

  /** Set by the driver for the executors; not for users. */
  private static final String ACTIVE = "spark.zerohop.internal.rapids";

  /** Set by the driver where the reserve follows our pool, since the user has not set it. */
  private static final String RESERVE_FOLLOWS = "spark.zerohop.internal.rapids.reserve";

  static final String MODE = "spark.rapids.shuffle.mode";
  public static final String RESERVE = "spark.rapids.memory.gpu.reserve";
  private static final String RESERVE_DEFAULT = "640m";
  private static final String CODEC = "spark.rapids.shuffle.compression.codec";
  static final String EXTENSIONS = "spark.sql.extensions";
  private static final String CACHE_ONLY = "CACHE_ONLY";

  /**
   * What Spark puts before the settings that a plugin's driver part hands to its executor part.
   * RAPIDS' executors size their pool by these and not by the executor's configuration.
   */
  private static final String HANDED_OVER = "spark.plugins.internal.conf." + Plugins.RAPIDS + ".";

  /** Set by the driver: features that this RAPIDS goes without, whatever the user wants. */
  private static final String WITHOUT = "spark.zerohop.internal.rapids.without";

  private static final String COALESCE = "spark.sql.adaptive.coalescePartitions.";

  /** Keys by which a user decides how many reduce tasks adaptive execution makes. */
  static final List<String> REDUCE_TASKS =
      List.of(
          COALESCE + "parallelismFirst",
          COALESCE + "minPartitionNum",
          COALESCE + "minPartitionSize",
          "spark.sql.adaptive.advisoryPartitionSizeInBytes",
          // Its older name.
          "spark.sql.adaptive.shuffle.targetPostShuffleInputSize");

  private static final long MIB = 1L << 20;

  private RapidsMode() {}

  /** Whether the driver decided for it. */
  public static boolean isActive(final SparkConf conf) {
    return conf.getBoolean(ACTIVE, false);
  }

  /**
   * Returns in words how reduce tasks of RAPIDS get their size, by the settings of all sessions.
   */
  public static String reduceTasks(final SparkConf conf) {
    final String coalesce = COALESCE + "enabled";
    final Optional<String> off =
        Stream.of("spark.sql.adaptive.enabled", coalesce)
            .filter(key -> !conf.getBoolean(key, true))
            .findFirst();
    if (off.isPresent()) {
      return "Spark coalesces none, since " + off.get() + " is false";
    }
    final Optional<String> set = REDUCE_TASKS.stream().filter(conf::contains).findFirst();
    if (set.isPresent()) {
      return "Spark decides, since " + set.get() + " is set";
    }
    final String lacks = SparkProbe.here().missing(SparkFeature.COALESCE);
    if (lacks != null) {
      return "Spark decides, since " + lacks;
    }
    final long size = ZerohopConf.of(conf).rapids().coalesceSize();
    return size == 0
        ? "Spark decides, since " + CoalesceRule.KEY + " is 0"
        : "coalesced up to " + size / MIB + " MiB in stages that run on the GPU";
  }

  /** Whether a feature is used with this RAPIDS, as the driver has found. */
  public static boolean has(final SparkConf conf, final RapidsFeature feature) {
    return !Arrays.asList(conf.get(WITHOUT, "").split(",")).contains(feature.name());
  }

  /**
   * Decides, and sets what RAPIDS has to find.
   *
   * @throws IllegalStateException if the user forces a GPU mode that cannot work
   */
  public static void prepare(final SparkConf conf) {
    if (concerns(conf)) {
      prepare(conf, Preflight.look());
    }
  }

  /** The same by what the driver has seen. */
  public static void prepare(final SparkConf conf, final Preflight seen) {
    if (!concerns(conf)) {
      return;
    }
    learnKeys(conf, seen);
    final String mode = mode(conf);
    final Message obstacle = obstacle(conf, mode, seen);
    if (obstacle == null) {
      final long pool = PoolSizing.devicePoolBytes(conf);
      RapidsKeys.set(conf, "", MODE, CACHE_ONLY);
      conf.set(ACTIVE, "true");
      addExtension(conf);
      tellOf(conf, seen);
      if (!RapidsKeys.contains(conf, RESERVE)) {
        RapidsKeys.set(
            conf, "", RESERVE, reserveFor(pool)); // Of use where tasks run in the driver.
        conf.set(RESERVE_FOLLOWS, "true");
      }
      LOG.info(
          "Zerohop: RAPIDS' shuffles stay in GPU memory, in up to {} of it per executor",
          PoolSizing.isDevicePoolSet(conf) ? pool / MIB + " MiB" : "a fifth");
      LOG.info("Zerohop: reduce tasks: {} (docs/tuning.md)", reduceTasks(conf));
      final Message library = seen.library();
      if (library != null) {
        SparkCode.LIBRARY_MISSING
            .says(
                "executors on machines like the driver's will shuffle RAPIDS' tables through files")
            .because(library)
            .warn(LOG);
      }
    } else if (mode.equals(CACHE_ONLY) || mode.equals("UCX")) {
      throw new UnusableException(
          Message.of(
                  RapidsKeys.inForce(conf, MODE)
                      + "="
                      + mode
                      + " cannot work with Zerohop (remove that setting, or what is in its way)")
              .because(obstacle));
    } else {
      SparkCode.NOT_FROM_GPU_TO_GPU
          .says("RAPIDS' shuffles go through host memory, not from GPU to GPU")
          .because(obstacle)
          .warn(LOG);
    }
  }

  private static void learnKeys(final SparkConf conf, final Preflight seen) {
    final RapidsProbe probe = seen.probe();
    if (probe != null && probe.knowsCudfKeys()) {
      RapidsKeys.knowNew(conf);
    }
  }

  private static String mode(final SparkConf conf) {
    return RapidsKeys.get(conf, MODE, "").toUpperCase(Locale.ROOT);
  }

  /** What a user should know of this release, and what of ours it goes without. */
  private static void tellOf(final SparkConf conf, final Preflight seen) {
    final RapidsRelease release =
        Objects.requireNonNull(RapidsRelease.of(seen.rapids()), "else there is an obstacle");
    if (release.basis() == RapidsRelease.Basis.SOURCE) {
      SparkCode.RAPIDS_NOT_RUN
          .says(
              "Zerohop was compared with this RAPIDS Accelerator's source and not run with it; all"
                  + " classes that it needs are there")
          .at("RAPIDS Accelerator " + seen.rapids())
          .remedy("see docs/compatibility.md")
          .warn(LOG);
    } else if (release.basis() == RapidsRelease.Basis.PROBE) {
      SparkCode.RAPIDS_NEW
          .says(
              "this RAPIDS Accelerator is newer than those that Zerohop was tested with; all"
                  + " classes that it needs are there")
          .at("RAPIDS Accelerator " + seen.rapids())
          .remedy("see docs/compatibility.md")
          .warn(LOG);
    }
    for (final RapidsFeature feature : List.of(RapidsFeature.KUDO, RapidsFeature.SPILL_STORE)) {
      final String lacks = missing(seen, feature);
      final String why = release.without().getOrDefault(feature, lacks);
      if (why != null) {
        SparkCode.RAPIDS_WITHOUT
            .says("goes without " + feature.words())
            .at("RAPIDS Accelerator " + seen.rapids())
            .because(why.equals(lacks) ? "it lacks " + lacks : why)
            .warn(LOG);
        conf.set(WITHOUT, conf.get(WITHOUT, "") + "," + feature.name());
      }
    }
  }

  /** Sessions are made after this, and RAPIDS adds its own likewise. */
  private static void addExtension(final SparkConf conf) {
    final String set = conf.get(EXTENSIONS, "").trim();
    final String ours = RapidsExtension.class.getName();
    if (!Arrays.asList(set.split("\\s*,\\s*")).contains(ours)) {
      conf.set(EXTENSIONS, set.isEmpty() ? ours : set + "," + ours);
    }
  }

  private static String reserveFor(final long pool) {
    return Long.toString(JavaUtils.byteStringAsBytes(RESERVE_DEFAULT) + pool);
  }

  /**
   * Sizes the pool of an executor, and what RAPIDS leaves free for it, by the executor's own GPU.
   * To be called before RAPIDS' plugin starts in it.
   *
   * @param conf the executor's live configuration
   */
  public static void prepareExecutor(final SparkConf conf) {
    if (isActive(conf) && !PoolSizing.isDevicePoolSet(conf)) {
      prepareExecutor(conf, gpuBytes());
    }
  }

  /** Memory of the smallest GPU of this process; 0 if there is none, or it cannot be asked. */
  private static long gpuBytes() {
    try {
      return CudaDriver.leastMemory();
    } catch (final ZerohopException e) {
      SparkCode.GPU_SIZE_UNKNOWN
          .says("the memory size of this executor's GPU is unknown; using the default")
          .because(e)
          .warn(LOG, e);
      return 0;
    }
  }

  /**
   * The same for a GPU.
   *
   * @param gpuBytes memory of the smallest GPU that this executor may use; 0 if it is not known
   */
  public static void prepareExecutor(final SparkConf conf, final long gpuBytes) {
    final long pool = PoolSizing.devicePoolBytes(gpuBytes);
    conf.set("spark.zerohop.device.pool.size", Long.toString(pool));
    if (conf.getBoolean(RESERVE_FOLLOWS, false)) {
      RapidsKeys.set(conf, "", RESERVE, reserveFor(pool));
      RapidsKeys.set(conf, HANDED_OVER, RESERVE, reserveFor(pool));
    }
    LOG.info("Zerohop: GPU memory for shuffles in this executor: up to {} MiB", pool / MIB);
  }

  /** Whether RAPIDS and Zerohop are both to be used. */
  public static boolean concerns(final SparkConf conf) {
    return Plugins.has(key -> conf.get(key, null), Plugins.RAPIDS)
        && conf.get("spark.shuffle.manager", "").equals(ZerohopConf.SHUFFLE_MANAGER)
        && ZerohopConf.of(conf).enabled();
  }

  /** Returns why RAPIDS' shuffles would not stay in GPU memory; null if they would. */
  public static @Nullable Message obstacle(final SparkConf conf, final Preflight seen) {
    final SparkConf copy = conf.clone();
    learnKeys(copy, seen);
    return obstacle(copy, mode(copy), seen);
  }

  /** Returns what prevents it, and the remedy; null if nothing does. */
  static @Nullable Message obstacle(final SparkConf conf, final String mode, final Preflight seen) {
    if (!ZerohopConf.of(conf).rapids().enabled()) {
      return SparkCode.GPU_SHUFFLES_OFF
          .says("spark.zerohop.rapids.enabled is false")
          .remedy("set spark.zerohop.rapids.enabled=true to allow it");
    }
    // The manager steps aside for the same, and sort shuffle cannot take batches on the GPU.
    final Message inactive = Activation.obstacle(conf);
    if (inactive != null) {
      return inactive;
    }
    final Message lacks = SparkProbe.here().sentence(SparkFeature.GPU);
    if (lacks != null) {
      return lacks;
    }
    if (conf.getBoolean("spark.authenticate", false)) {
      // No remedy is named: without it Spark's own ports are open, and our secret travels by them.
      return SparkCode.AUTHENTICATION_ON.says(
          "RAPIDS hands out no GPU batches while spark.authenticate is on");
    }
    if (!RapidsKeys.get(conf, CODEC, "none").equalsIgnoreCase("none")) {
      return SparkCode.COMPRESSED_BATCHES
          .says("compressed GPU batches are not supported")
          .remedy("set " + RapidsKeys.inForce(conf, CODEC) + "=none");
    }
    if (!mode.isEmpty() && !mode.equals(CACHE_ONLY)) {
      return SparkCode.OTHER_RAPIDS_MODE
          .says(RapidsKeys.inForce(conf, MODE) + "=" + mode + " asks for another shuffle manager")
          .remedy("remove that setting");
    }
    final Message kernels = seen.kernels();
    if (kernels != null) {
      return kernels.code(SparkCode.NO_KERNELS);
    }
    return releaseObstacle(seen);
  }

  /** Whether all that is used of a release was bound against its jar. */
  public static boolean isBound(final @Nullable String version) {
    final RapidsRelease release = RapidsRelease.of(version);
    return release != null && release.basis() == RapidsRelease.Basis.JAR;
  }

  /** Returns why this release of RAPIDS cannot be used; null if it can. */
  public static @Nullable Message releaseObstacle(final Preflight seen) {
    final String version = seen.rapids();
    if (version == null) {
      return SparkCode.RAPIDS_NOT_FOUND
          .says("the RAPIDS Accelerator's version could not be found")
          .remedy("put its jar on the driver's class path");
    }
    if (RapidsRelease.of(version) == null) {
      return SparkCode.RAPIDS_UNKNOWN
          .says(
              "RAPIDS Accelerator "
                  + version
                  + " is older than "
                  + RapidsRelease.all().get(0).name())
          .remedy("use a rapids-4-spark jar of that or a later release");
    }
    final String missing = missing(seen, RapidsFeature.SHUFFLE);
    if (missing != null) {
      return SparkCode.RAPIDS_INCOMPLETE
          .says("RAPIDS Accelerator " + version + " lacks " + missing)
          .remedy("use a version of docs/compatibility.md");
    }
    return null;
  }

  /** Null as well where nobody has looked. */
  private static @Nullable String missing(final Preflight seen, final RapidsFeature feature) {
    final RapidsProbe probe = seen.probe();
    return probe == null ? null : probe.missing(feature);
  }

  /**
   * A release of the RAPIDS Accelerator, as the matrix ({@value #MATRIX}, docs/compatibility.md)
   * has it. Immutable.
   *
   * @param name the first two parts of its version
   * @param basis how it is known
   * @param without features that it lacks or that are not used with it, and why
   */
  record RapidsRelease(String name, Basis basis, Map<RapidsFeature, String> without) {
    static final String MATRIX = "/io/zerohop/spark/rapids/compatibility.json";

    /** The basis of what is known of a release. */
    enum Basis {
      /** By its jar, which a check binds; docs/compatibility.md says what was run of it. */
      JAR,

      /** By its public source; nobody has run it. */
      SOURCE,

      /** Not in the matrix: its members are probed at start, and nothing else is known. */
      PROBE
    }

    private static final List<RapidsRelease> ALL = read();

    /** All of the matrix, the oldest first. */
    static List<RapidsRelease> all() {
      return ALL;
    }

    private static List<RapidsRelease> read() {
      try (InputStream in = RapidsRelease.class.getResourceAsStream(MATRIX)) {
        final List<RapidsRelease> all = new ArrayList<>();
        for (final JsonNode node : new ObjectMapper().readTree(in).get("releases")) {
          final Map<RapidsFeature, String> without = new EnumMap<>(RapidsFeature.class);
          final JsonNode lacks = node.get("without");
          lacks
              .fieldNames()
              .forEachRemaining(
                  name -> without.put(RapidsFeature.valueOf(name), lacks.get(name).asText()));
          all.add(
              new RapidsRelease(
                  node.get("release").asText(),
                  node.get("basis").asText().equals("jar") ? Basis.JAR : Basis.SOURCE,
                  without));
        }
        return List.copyOf(all);
      } catch (final IOException e) {
        throw new UncheckedIOException("Zerohop's jar lacks " + MATRIX, e);
      }
    }

    /**
     * The release that a version belongs to; null if there is no version, or it is older than all
     * that are known. One that is not known has what the probe sees, if it is newer than the
     * oldest.
     */
    static @Nullable RapidsRelease of(final @Nullable String version) {
      if (version == null) {
        return null;
      }
      final List<RapidsRelease> all = all();
      for (final RapidsRelease release : all) {
        if (version.startsWith(release.name + ".")) {
          return release;
        }
      }
      return isBefore(version, all.get(0).name)
          ? null
          : new RapidsRelease(version, Basis.PROBE, Map.of());
    }

    private static boolean isBefore(final String version, final String other) {
      final String[] left = version.split("\\.");
      final String[] right = other.split("\\.");
      final int year = Integer.compare(number(left, 0), number(right, 0));
      return year < 0 || year == 0 && number(left, 1) < number(right, 1);
    }

    /** What is no number is newer than anything. */
    private static int number(final String[] parts, final int index) {
      try {
        return index < parts.length ? Integer.parseInt(parts[index]) : 0;
      } catch (final NumberFormatException e) {
        return Integer.MAX_VALUE;
      }
    }
  }
}
