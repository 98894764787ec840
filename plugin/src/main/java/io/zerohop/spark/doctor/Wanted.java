package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.spark.conf.NetworkTrust;
import io.zerohop.spark.conf.ZerohopConf;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * The requirements of the settings on the machine, as far as they are needed without Spark on the
 * class path. Immutable.
 *
 * @param socketBase where sockets shall be; null for the default
 * @param noPort why no port may be opened for other nodes; null if one may be
 * @param jucx another jucx jar; null for the one in ours
 * @param jucxOfFile whether a file alone names that jar, so that it is not loaded
 * @param emulatedGets whether gets by UCX are taken wherever they are possible, as tests want it
 * @param rapids whether RAPIDS' plugin is configured
 */
record Wanted(
    Path socketBase,
    Message noPort,
    Path jucx,
    boolean jucxOfFile,
    boolean emulatedGets,
    boolean rapids) {
  private static final String RAPIDS_PLUGIN = "com.nvidia.spark.SQLPlugin";

  /**
   * Returns the requirements of a configuration.
   *
   * @throws IllegalArgumentException for a value that is not valid
   */
  static Wanted of(final Settings settings) {
    final String base = ZerohopConf.SOCKET_DIR.of(settings.get(ZerohopConf.SOCKET_DIR.key()));
    final String jucx = ZerohopConf.UCX_JUCX.of(settings.get(ZerohopConf.UCX_JUCX.key()));
    final String plugins = settings.get("spark.plugins");
    return new Wanted(
        base.equals(ZerohopConf.AUTO) ? null : Path.of(base),
        NetworkTrust.obstacle(settings::get),
        jucx.isEmpty() ? null : Path.of(jucx),
        settings.isOfFile(ZerohopConf.UCX_JUCX.key()),
        Boolean.parseBoolean(settings.get(ZerohopConf.EMULATED_GETS)),
        plugins != null
            && Arrays.stream(plugins.split(",")).map(String::trim).anyMatch(RAPIDS_PLUGIN::equals));
  }

  /** Returns whether executors use UCX. */
  boolean ucx() {
    return noPort == null;
  }
}
