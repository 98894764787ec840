package io.zerohop.spark.sent;

import java.util.Map;

/** The same with Spark's proof and encryption. */
class SentEncryptedPathTest extends SentPathTest {
  @Override
  protected Map<String, String> settings() {
    return Map.of(
        "spark.authenticate", "true",
        "spark.authenticate.secret", "a secret of an application",
        "spark.network.crypto.enabled", "true");
  }
}
