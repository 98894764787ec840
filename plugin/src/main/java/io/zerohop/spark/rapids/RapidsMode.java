package io.zerohop.spark.rapids;

import io.zerohop.spark.Activation;
import io.zerohop.spark.PoolSizing;
import io.zerohop.spark.ZerohopConf;
import io.zerohop.spark.ZerohopShuffleManager;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import org.apache.spark.SparkConf;
import org.apache.spark.network.util.JavaUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether RAPIDS may hand its batches to Zerohop in GPU memory. Decided once, on the driver, before
 * RAPIDS reads its configuration: afterwards it is too late, since its planning follows the mode
 * that is set then, and its executors size their memory pool by it.
 */
public final class RapidsMode {
  private static final Logger LOG = LoggerFactory.getLogger(RapidsMode.class);

  /** Set by the driver for the executors; not for users. */
  private static final String ACTIVE = "spark.zerohop.internal.rapids";

  static final String MODE = "spark.rapids.shuffle.mode";
  static final String RESERVE = "spark.rapids.memory.gpu.reserve";
  private static final String RESERVE_DEFAULT = "640m";
  private static final String CODEC = "spark.rapids.shuffle.compression.codec";
  private static final String CACHE_ONLY = "CACHE_ONLY";
  private static final String PLUGIN = "com.nvidia.spark.SQLPlugin";
  private static final String VERSION_FILE = "rapids4spark-version-info.properties";

  /** Releases whose classes are known, as the first parts of their version. */
  private static final List<String> VERSIONS = List.of("26.08");

  private RapidsMode() {}

  /** Whether the driver decided for it. */
  public static boolean isActive(final SparkConf conf) {
    return conf.getBoolean(ACTIVE, false);
  }

  /**
   * Decides, and sets what RAPIDS has to find.
   *
   * @throws IllegalStateException if the user forces a GPU mode that cannot work
   */
  public static void prepare(final SparkConf conf) {
    prepare(conf, version());
  }

  /**
   * The same for a version of RAPIDS.
   *
   * @param version null if it is not known
   */
  static void prepare(final SparkConf conf, final String version) {
    if (!concerns(conf)) {
      return;
    }
    final String mode = conf.get(MODE, "").toUpperCase(Locale.ROOT);
    final String obstacle = obstacle(conf, mode, version);
    if (obstacle == null) {
      final long pool = PoolSizing.devicePoolBytes(conf);
      conf.set(MODE, CACHE_ONLY);
      conf.set(ACTIVE, "true");
      conf.set(ZerohopConf.DEVICE_POOL_SIZE.key(), Long.toString(pool)); // For the executors.
      if (!conf.contains(RESERVE)) {
        final long reserve = JavaUtils.byteStringAsBytes(RESERVE_DEFAULT) + pool;
        conf.set(RESERVE, Long.toString(reserve));
      }
      LOG.info(
          "Zerohop: RAPIDS' shuffles stay in GPU memory, in up to {} MiB of it per executor",
          pool >> 20);
    } else if (mode.equals(CACHE_ONLY) || mode.equals("UCX")) {
      throw new IllegalStateException(
          MODE + "=" + mode + " cannot work with Zerohop: " + obstacle + ". Or remove " + MODE);
    } else {
      LOG.warn(
          "Zerohop carries RAPIDS' shuffles through host memory, not from GPU to GPU: {}",
          obstacle);
    }
  }

  private static boolean concerns(final SparkConf conf) {
    return Arrays.stream(conf.get("spark.plugins", "").split(","))
            .map(String::trim)
            .anyMatch(PLUGIN::equals)
        && conf.get("spark.shuffle.manager", "").equals(ZerohopShuffleManager.class.getName())
        && ZerohopConf.ENABLED.get(conf);
  }

  /** What stands in the way and what mends it; null if nothing does. */
  static String obstacle(final SparkConf conf, final String mode, final String version) {
    if (!ZerohopConf.RAPIDS_ENABLED.get(conf)) {
      return "set " + ZerohopConf.RAPIDS_ENABLED.key() + "=true to allow it";
    }
    // The manager steps aside for the same, and sort shuffle cannot take batches on the GPU.
    final String inactive = Activation.obstacle(conf);
    if (inactive != null) {
      return inactive;
    }
    if (conf.getBoolean("spark.authenticate", false)) {
      // No remedy is named: without it Spark's own ports are open, and our secret travels by them.
      return "RAPIDS hands out no GPU batches while spark.authenticate is on";
    }
    if (!conf.get(CODEC, "none").equalsIgnoreCase("none")) {
      return "compressed GPU batches are not supported; set " + CODEC + "=none";
    }
    if (!mode.isEmpty() && !mode.equals(CACHE_ONLY)) {
      return MODE + "=" + mode + " asks for another shuffle manager; remove that setting";
    }
    if (version == null) {
      return "the RAPIDS Accelerator's version could not be found; put its jar on the driver's class"
          + " path";
    }
    if (VERSIONS.stream().noneMatch(known -> version.startsWith(known + "."))) {
      return "RAPIDS Accelerator " + version + " is not one of " + VERSIONS + "; use one of these";
    }
    return null;
  }

  /** Of the RAPIDS jar that is on the class path; null if there is none. */
  private static String version() {
    final ClassLoader context = Thread.currentThread().getContextClassLoader();
    final ClassLoader loader = context == null ? RapidsMode.class.getClassLoader() : context;
    try (InputStream in = loader.getResourceAsStream(VERSION_FILE)) {
      if (in == null) {
        return null;
      }
      final Properties properties = new Properties();
      properties.load(in);
      return properties.getProperty("version");
    } catch (final IOException e) {
      LOG.debug("cannot read {}", VERSION_FILE, e);
      return null;
    }
  }
}
