package io.zerohop.spark.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import org.apache.spark.SparkConf;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** For how many executors the doctor waits, or one that comes late would not be examined. */
class ExpectedExecutorsTest {
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "local-cluster[2,1,1024] | 5 | false | 3 | 2",
        "local-cluster[ 12 , 1, 1024] | 0 | false | 0 | 12",
        "local[4] | 0 | false | 0 | 0",
        "spark://host:7077 | 4 | false | 3 | 0",
        "spark://host:7077 | 4 | true | 3 | 3",
        "yarn | 5 | false | 3 | 5",
        "yarn | 5 | true | 3 | 3",
      })
  void itIsWhatTheApplicationWillHave(
      final String master,
      final int instances,
      final boolean dynamic,
      final int least,
      final int expected) {
    final SparkConf conf =
        new SparkConf(false)
            .set("spark.master", master)
            .set("spark.executor.instances", String.valueOf(instances))
            .set("spark.dynamicAllocation.enabled", String.valueOf(dynamic))
            .set("spark.dynamicAllocation.minExecutors", String.valueOf(least));
    assertThat(SparkApplication.expected(conf)).isEqualTo(expected);
  }
}
