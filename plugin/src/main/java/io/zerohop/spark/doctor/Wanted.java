package io.zerohop.spark.doctor;

import io.zerohop.spark.conf.ZerohopConf;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.function.UnaryOperator;

/**
 * What the settings ask of the machine, as far as it is needed where Spark is not on the class
 * path. Immutable.
 *
 * @param socketBase where sockets shall be; null for the default
 * @param ucx whether the network is trusted, so that UCX shall be used
 * @param jucx another jucx jar; null for the one in ours
 * @param rapids whether RAPIDS' plugin is configured
 */
record Wanted(Path socketBase, boolean ucx, Path jucx, boolean rapids) {
  private static final String RAPIDS_PLUGIN = "com.nvidia.spark.SQLPlugin";

  /**
   * Of a configuration.
   *
   * @param settings the value of a key; null if it is not set
   * @throws IllegalArgumentException for a value that is not valid
   */
  static Wanted of(final UnaryOperator<String> settings) {
    final String base = ZerohopConf.SOCKET_DIR.of(settings.apply(ZerohopConf.SOCKET_DIR.key()));
    final String jucx = ZerohopConf.UCX_JUCX.of(settings.apply(ZerohopConf.UCX_JUCX.key()));
    final String plugins = settings.apply("spark.plugins");
    return new Wanted(
        base.equals(ZerohopConf.AUTO) ? null : Path.of(base),
        ZerohopConf.UCX_TRUSTED_NETWORK.of(settings.apply(ZerohopConf.UCX_TRUSTED_NETWORK.key())),
        jucx.isEmpty() ? null : Path.of(jucx),
        plugins != null
            && Arrays.stream(plugins.split(",")).map(String::trim).anyMatch(RAPIDS_PLUGIN::equals));
  }
}
