package io.zerohop.spark.conf;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.shuffle.block.Path;
import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.util.List;
import java.util.Locale;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

class ZerohopConfTest {

  /** Regenerate with {@code -Dzerohop.docs.write=true}. */
  @Test
  void theDocumentationIsWhatTheKeysSay() throws IOException {
    final java.nio.file.Path page = java.nio.file.Path.of("../docs/configuration.md");
    final String expected = markdown();
    if (Boolean.getBoolean("zerohop.docs.write")) {
      Files.writeString(page, expected);
    }
    assertThat(Files.readString(page))
        .as("docs/configuration.md is stale; run mvn -pl plugin -am test -Dzerohop.docs.write=true")
        .isEqualTo(expected);
  }

  private static String markdown() {
    final StringBuilder page = new StringBuilder();
    page.append("# Configuration\n\n");
    page.append("For everybody who configures Zerohop. This page lists all keys ");
    page.append("with types and defaults. It is generated from `ZerohopConf`.\n\n");
    page.append("No key is needed beside `spark.plugins=io.zerohop.spark.ZerohopPlugin`, ");
    page.append("with which Spark 3.5 also needs ");
    page.append("`spark.shuffle.manager=io.zerohop.spark.ZerohopShuffleManager`.\n\n");
    page.append("| key | type | default | what it does |\n| --- | --- | --- | --- |\n");
    for (final ConfEntry<?> entry : ZerohopConf.ENTRIES) {
      page.append(
          String.format(
              Locale.ROOT,
              "| `%s` | %s | `%s` | %s |%n",
              entry.key(),
              entry.type(),
              entry.defaultText(),
              entry.doc()));
    }
    return page.toString();
  }

  @Test
  void everyDeclaredKeyIsListed() throws IllegalAccessException {
    for (final Field field : ZerohopConf.class.getDeclaredFields()) {
      if (field.getType() == ConfEntry.class) {
        assertThat(ZerohopConf.ENTRIES).contains((ConfEntry<?>) field.get(null));
      }
    }
  }

  @Test
  void everyDefaultIsValid() {
    assertThat(ZerohopConf.validate(new SparkConf(false))).isEmpty();
  }

  @Test
  void aBadValueNamesItsKeyAndWhatIsExpected() {
    final SparkConf conf = new SparkConf(false).set("spark.zerohop.segment.size", "12parsecs");
    assertThatThrownBy(() -> ZerohopConf.validate(conf))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("spark.zerohop.segment.size=12parsecs")
        .hasMessageContaining("128m");
  }

  @Test
  void aMisspeltKeyIsReported() {
    final SparkConf conf = new SparkConf(false).set("spark.zerohop.pool.sise", "1g");
    assertThat(ZerohopConf.validate(conf)).containsExactly("spark.zerohop.pool.sise");
  }

  @Test
  void aKeyThatWentIsReportedAndItsValueNotRead() {
    final SparkConf conf = new SparkConf(false).set("spark.zerohop.ucx.mode", "message");
    assertThat(ZerohopConf.validate(conf)).containsExactly("spark.zerohop.ucx.mode");
  }

  @Test
  void valuesAreParsed() {
    final SparkConf conf =
        new SparkConf(false)
            .set("spark.zerohop.paths", "peer, STAGED")
            .set("spark.zerohop.pool.size", "3g")
            .set("spark.zerohop.request.timeout", "250ms")
            .set("spark.zerohop.checksum.enabled", "false");
    assertThat(ZerohopConf.PATHS.get(conf))
        .containsExactlyElementsOf(List.of(Path.PEER, Path.STAGED));
    assertThat(ZerohopConf.POOL_SIZE.get(conf)).isEqualTo(3L << 30);
    assertThat(ZerohopConf.REQUEST_TIMEOUT.get(conf)).isEqualTo(250);
    assertThat(ZerohopConf.CHECKSUM.get(conf)).isFalse();
  }
}
