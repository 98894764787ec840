package io.zerohop.spark.rapids.setup;

import static org.assertj.core.api.Assertions.assertThat;

import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

class PoolAdviceTest {
  private static SparkConf pool(final String pool) {
    return new SparkConf(false).set(PoolAdvice.POOL, pool);
  }

  @Test
  void onlyManyPartitionsInTheDriversPoolNeedIt() {
    assertThat(PoolAdvice.applies(new SparkConf(false), 1000)).isTrue();
    assertThat(PoolAdvice.applies(pool("async"), 5000)).isTrue();
    assertThat(PoolAdvice.applies(pool(""), 5000)).isTrue();
    assertThat(PoolAdvice.applies(pool("ASYNC"), 999)).isFalse();
    assertThat(PoolAdvice.applies(pool("ARENA"), 5000)).isFalse();
    assertThat(PoolAdvice.applies(pool("NONE"), 5000)).isFalse();
  }
}
