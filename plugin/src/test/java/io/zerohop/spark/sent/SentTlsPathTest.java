package io.zerohop.spark.sent;

import io.zerohop.spark.TlsKeys;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.io.TempDir;

/** The same with TLS, which Spark has from 4.0 on. */
class SentTlsPathTest extends SentPathTest {
  @TempDir private static Path keys;

  @Override
  protected Map<String, String> settings() {
    return TlsKeys.settings(keys);
  }
}
