package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.spark.conf.NetworkTrust;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The requirements of the settings on the machine, as far as they are needed without Spark on the
 * class path. Immutable.
 *
 * @param conf Zerohop's own keys
 * @param noPort why no port may be opened for other nodes, if so
 * @param jucxOfFile whether a file alone names the jucx jar, so that it is not loaded
 * @param rapids whether RAPIDS' plugin is configured
 */
record Wanted(Config conf, @Nullable Message noPort, boolean jucxOfFile, boolean rapids) {
  private static final String RAPIDS_PLUGIN = "com.nvidia.spark.SQLPlugin";

  /**
   * Returns the requirements of a configuration.
   *
   * @throws IllegalArgumentException for a value that is not valid
   */
  static Wanted of(final Settings settings) {
    final String plugins = settings.get("spark.plugins");
    return new Wanted(
        Config.read(settings::get),
        NetworkTrust.obstacle(settings::get),
        settings.isOfFile("spark.zerohop.ucx.jucx"),
        plugins != null
            && Arrays.stream(plugins.split(",")).map(String::trim).anyMatch(RAPIDS_PLUGIN::equals));
  }

  /** Returns whether executors use UCX. */
  boolean ucx() {
    return noPort == null;
  }
}
