package io.zerohop.spark.rapids;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.spark.LocalSpark;
import io.zerohop.spark.rapids.setup.RapidsLatch;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.rapids.GpuShuffleDependency;
import org.apache.spark.sql.rapids.GpuShuffleEnv$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import scala.Product2;
import scala.collection.immutable.Map$;
import scala.reflect.ClassTag;

/** What the plugin asks RAPIDS about, with classes of RAPIDS' names that are bound as its own. */
class RapidsShuffleTest {
  @RegisterExtension static final LocalSpark SPARK = new LocalSpark();

  private static GpuShuffleDependency dependency(final boolean usesGpu) {
    return new GpuShuffleDependency(
        SPARK.context().emptyRDD(ClassTag.apply(Product2.class)),
        2,
        new DataType[] {DataTypes.IntegerType},
        Map$.MODULE$.empty(),
        usesGpu);
  }

  @Test
  void aShuffleIsOfTheGpuIfItsDependencySaysSo() {
    assertThat(RapidsShuffle.isGpuShuffle(dependency(true))).isTrue();
    assertThat(RapidsShuffle.isGpuShuffle(dependency(false))).isFalse();
    RapidsShuffle.advise(dependency(true)); // It has no metrics, which is said and no failure.
  }

  @Test
  void theGpuIsTheOneThatRapidsHas() {
    assertThat(RapidsShuffle.deviceId()).isZero();
  }

  @Test
  void rapidsShufflesOnTheGpuOnceItHasSeenItsOwnName() {
    final SparkConf conf = SparkEnv.get().conf();
    conf.set("spark.shuffle.manager", "io.zerohop.spark.ZerohopShuffleManager");
    RapidsLatch.close(SparkEnv.get());
    assertThat(conf.get("spark.shuffle.manager"))
        .isEqualTo("io.zerohop.spark.ZerohopShuffleManager");
    assertThat(GpuShuffleEnv$.MODULE$.useGPUShuffle(null)).isTrue();
    RapidsLatch.closeInExecutor(SparkEnv.get());
    RapidsLatch.check();
  }

  @Test
  void plansThatWouldNotFitAreRefused() {
    SparkEnv.get().conf().set("spark.shuffle.manager", "io.zerohop.spark.ZerohopShuffleManager");
    GpuShuffleEnv$.MODULE$.refuse(true);
    try {
      assertThatThrownBy(() -> RapidsLatch.close(SparkEnv.get()))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("spark.zerohop.rapids.enabled=false");
    } finally {
      GpuShuffleEnv$.MODULE$.refuse(false);
    }
  }
}
