package io.zerohop.spark.rapids.setup;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.cuda.CudaDevice;
import io.zerohop.device.posix.NativeLibrary;
import io.zerohop.spark.rapids.api.RapidsProbe;
import java.io.IOException;
import java.io.InputStream;
import java.util.Properties;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The driver's checks, before planning, of what executors need to shuffle in GPU memory. The jars
 * are the same everywhere; the driver's machine may differ from theirs, so what only it lacks
 * forbids nothing.
 *
 * @param rapids version of the RAPIDS jar on the class path, if there is one
 * @param probe what that lacks; absent if there is none, or it was not looked at
 * @param kernels why our jar cannot use a GPU, if so
 * @param library why this machine cannot load our native library, if so
 */
public record Preflight(
    @Nullable String rapids,
    @Nullable RapidsProbe probe,
    @Nullable Message kernels,
    @Nullable Message library) {
  private static final Logger LOG = LoggerFactory.getLogger(Preflight.class);
  private static final String VERSION_FILE = "rapids4spark-version-info.properties";

  /** Looks. */
  public static Preflight look() {
    final String rapids = rapidsVersion();
    final RapidsProbe probe = rapids == null ? null : RapidsProbe.look();
    return new Preflight(rapids, probe, CudaDevice.missingKernels(), libraryFailure());
  }

  /**
   * Looks without RAPIDS' classes, where its jar is named by settings and is not on the class path
   * of this process.
   */
  public static Preflight lookAtVersion() {
    return new Preflight(rapidsVersion(), null, CudaDevice.missingKernels(), libraryFailure());
  }

  private static @Nullable Message libraryFailure() {
    try {
      NativeLibrary.require();
      return null;
    } catch (final ZerohopException e) {
      return e.message();
    }
  }

  private static @Nullable String rapidsVersion() {
    final ClassLoader context = Thread.currentThread().getContextClassLoader();
    final ClassLoader loader = context == null ? Preflight.class.getClassLoader() : context;
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
