package io.zerohop.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.metrics.source.Source;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import scala.collection.Seq;

/**
 * Shuffles go through memory where the classes of the tab, its reports and the doctor are absent.
 */
@Timeout(120)
class WithoutTabTest {
  private static final List<String> ABSENT =
      List.of("io.zerohop.spark.ui.", "io.zerohop.spark.report.", "io.zerohop.spark.doctor.");

  /** Loads the plugin's classes anew, without those of some packages. */
  private static final class Without extends ClassLoader {
    Without() {
      super(WithoutTabTest.class.getClassLoader());
    }

    @Override
    protected Class<?> loadClass(final String name, final boolean resolve)
        throws ClassNotFoundException {
      if (!name.startsWith("io.zerohop.spark.")) {
        return super.loadClass(name, resolve);
      }
      synchronized (getClassLoadingLock(name)) {
        final Class<?> loaded = findLoadedClass(name);
        return loaded == null ? define(name) : loaded;
      }
    }

    private Class<?> define(final String name) throws ClassNotFoundException {
      if (ABSENT.stream().anyMatch(name::startsWith)) {
        throw new ClassNotFoundException(name);
      }
      try (InputStream file = getResourceAsStream(name.replace('.', '/') + ".class")) {
        if (file == null) {
          throw new ClassNotFoundException(name);
        }
        final byte[] bytes = file.readAllBytes();
        return defineClass(name, bytes, 0, bytes.length);
      } catch (final IOException e) {
        throw new ClassNotFoundException(name, e);
      }
    }
  }

  private static SparkConf conf() {
    return new SparkConf(false)
        .setMaster("local[2]")
        .setAppName("without the tab")
        .set("spark.ui.enabled", "false")
        .set("spark.task.maxFailures", "1")
        .set("spark.zerohop.pool.size", "16m")
        .set("spark.zerohop.segment.size", "8m");
  }

  private static <T> T withoutTab(final Supplier<T> application) {
    final Thread thread = Thread.currentThread();
    final ClassLoader before = thread.getContextClassLoader();
    thread.setContextClassLoader(new Without());
    try {
      return application.get();
    } finally {
      thread.setContextClassLoader(before);
    }
  }

  /** Shuffles a few records; returns the bytes that readers read in place. */
  private static long shuffle(final SparkConf conf) {
    try (JavaSparkContext spark = new JavaSparkContext(conf)) {
      assertThat(spark.parallelize(List.of(1, 2, 3, 4, 5, 6), 2).repartition(3).count())
          .isEqualTo(6);
      if (conf.get("spark.shuffle.manager").equals(ZerohopShuffleManager.class.getName())) {
        assertThat(SparkEnv.get().shuffleManager().getClass().getClassLoader())
            .isInstanceOf(Without.class);
      }
      return counted("local.bytes");
    }
  }

  /** Returns a counter of this process's source; 0 if there is no such source. */
  private static long counted(final String key) {
    final Seq<Source> sources = SparkEnv.get().metricsSystem().getSourcesByName("zerohop");
    return sources.isEmpty()
        ? 0
        : sources.head().metricRegistry().getCounters().get(key).getCount();
  }

  @Test
  void theLoaderHasNoTab() throws ClassNotFoundException {
    final ClassLoader loader = new Without();
    for (final String name :
        List.of("ui.LiveTab", "report.ReportCounters", "doctor.RunningDoctor")) {
      assertThat(Class.forName("io.zerohop.spark." + name, false, getClass().getClassLoader()))
          .isNotNull();
      assertThatThrownBy(() -> Class.forName("io.zerohop.spark." + name, false, loader))
          .isInstanceOf(ClassNotFoundException.class);
    }
  }

  @Test
  void shufflesGoThroughMemory() {
    final long bytes =
        withoutTab(
            () ->
                shuffle(
                    conf().set("spark.shuffle.manager", ZerohopShuffleManager.class.getName())));
    assertThat(bytes).isPositive();
  }

  @Test
  void anotherManagerIsLeftToItsWork() {
    final long bytes =
        withoutTab(
            () ->
                shuffle(
                    conf()
                        .set("spark.plugins", ZerohopPlugin.class.getName())
                        .set("spark.shuffle.manager", "sort")));
    assertThat(bytes).isZero();
  }
}
