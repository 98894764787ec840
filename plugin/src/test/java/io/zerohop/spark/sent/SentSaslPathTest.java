package io.zerohop.spark.sent;

import java.util.Map;

/** The same with SASL's encryption. */
class SentSaslPathTest extends SentPathTest {
  @Override
  protected Map<String, String> settings() {
    return Map.of(
        "spark.authenticate", "true",
        "spark.authenticate.secret", "a secret of an application",
        "spark.authenticate.enableSaslEncryption", "true");
  }
}
