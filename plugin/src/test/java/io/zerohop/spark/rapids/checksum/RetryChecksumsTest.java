package io.zerohop.spark.rapids.checksum;

import static org.assertj.core.api.Assertions.assertThat;

import org.agrona.UnsafeAccess;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.sql.internal.SQLConf;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What Spark's scheduler is told, by a dependency of the Spark that this is built with. */
class RetryChecksumsTest {
  private final ShuffleDependency<?, ?, ?> dependency = dependency();

  /** As a dependency is when it registers its shuffle: only its fields are there. */
  private static ShuffleDependency<?, ?, ?> dependency() {
    try {
      return (ShuffleDependency<?, ?, ?>)
          UnsafeAccess.UNSAFE.allocateInstance(ShuffleDependency.class);
    } catch (final InstantiationException e) {
      throw new AssertionError(e);
    }
  }

  private static void set(final String key, final boolean value) {
    SQLConf.get().setConfString(key, Boolean.toString(value));
  }

  @AfterEach
  void forget() {
    SQLConf.get().unsetConf(RetryChecksums.ENABLED);
    SQLConf.get().unsetConf(RetryChecksums.FULL_RETRY);
  }

  @Test
  void nothingIsDoneWithoutTheKeys() {
    set(RetryChecksums.ENABLED, false);
    set(RetryChecksums.FULL_RETRY, false);
    assertThat(RetryChecksums.enable(dependency)).isFalse();
    assertThat(dependency.checksumMismatchFullRetryEnabled()).isFalse();
  }

  @Test
  void theDefaultIsSparks() {
    final boolean on = SQLConf.get().shuffleChecksumMismatchFullRetryEnabled();
    assertThat(RetryChecksums.enable(dependency)).isEqualTo(on);
    assertThat(dependency.checksumMismatchFullRetryEnabled()).isEqualTo(on);
  }

  @Test
  void theSchedulerIsToldToActOnChecksums() {
    set(RetryChecksums.FULL_RETRY, true);
    assertThat(dependency.checksumMismatchFullRetryEnabled()).isFalse();
    assertThat(RetryChecksums.enable(dependency)).isTrue();
    assertThat(dependency.checksumMismatchFullRetryEnabled()).isTrue();
  }

  @Test
  void checksumsAloneAreReportedAndNotActedOn() {
    set(RetryChecksums.ENABLED, true);
    set(RetryChecksums.FULL_RETRY, false);
    assertThat(RetryChecksums.enable(dependency)).isTrue();
    assertThat(dependency.checksumMismatchFullRetryEnabled()).isFalse();
  }
}
