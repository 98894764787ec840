package io.zerohop.spark.rapids.api;

import java.lang.invoke.MethodHandle;
import org.apache.spark.SparkConf;

/**
 * RAPIDS' shuffle environment, which decides once, when it is created, whether batches stay on the
 * GPU. One subclass for each way that releases make it. Thread safe.
 */
abstract class ShuffleEnv {
  private final MethodHandle newConf;
  private final MethodHandle usesGpu;

  /** By classes of RAPIDS that this loader sees. */
  ShuffleEnv(final ClassLoader loader) throws ReflectiveOperationException {
    newConf = RapidsMember.NEW_CONF.bind(loader);
    usesGpu = RapidsMember.ENV_USES_GPU.bind(loader);
  }

  /** Binds the way that this release has. */
  static ShuffleEnv bind(final ClassLoader loader) throws ReflectiveOperationException {
    try {
      return new OfConf(loader);
    } catch (final NoSuchMethodException e) {
      try {
        return new WithDisk(loader);
      } catch (final ReflectiveOperationException other) {
        e.addSuppressed(other);
        throw e;
      }
    }
  }

  /** Makes it anew, of a configuration of RAPIDS'. */
  abstract void make(Object rapidsConf) throws Throwable;

  /** Makes it anew, and says whether batches stay on the GPU now. */
  boolean init(final SparkConf conf) {
    try {
      final Object rapidsConf = newConf.invoke(conf);
      make(rapidsConf);
      return (boolean) usesGpu.invoke(rapidsConf);
    } catch (final Throwable e) {
      throw RapidsClasses.rethrow(e);
    }
  }

  /** From 25.02 on. */
  private static final class OfConf extends ShuffleEnv {
    private final MethodHandle init;

    OfConf(final ClassLoader loader) throws ReflectiveOperationException {
      super(loader);
      init = RapidsMember.INIT_ENV.bind(loader);
    }

    @Override
    void make(final Object rapidsConf) throws Throwable {
      init.invoke(rapidsConf);
    }
  }

  /** 24.12: it is told where spilled buffers go, which the driver has no place for. */
  private static final class WithDisk extends ShuffleEnv {
    private final MethodHandle init;
    private final MethodHandle disk;

    WithDisk(final ClassLoader loader) throws ReflectiveOperationException {
      super(loader);
      init = RapidsMember.INIT_ENV_WITH_DISK.bind(loader);
      disk = RapidsMember.DISK_BLOCK_MANAGER.bind(loader);
    }

    @Override
    void make(final Object rapidsConf) throws Throwable {
      init.invoke(rapidsConf, disk.invoke());
    }
  }
}
