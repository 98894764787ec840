package io.zerohop.spark.conf;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.conf.Keys;
import java.io.IOException;
import java.nio.file.Files;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;
import org.apache.spark.network.util.JavaUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ZerohopConfTest {
  private static final Pattern NAMED =
      Pattern.compile("spark\\.zerohop\\.[a-zA-Z]+(?:\\.[a-zA-Z]+)*");

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
    page.append("For operators. This page lists every configuration key, with its default, its ");
    page.append("range and what it does. ");
    page.append("It is generated from `Config`; a test fails when it is stale. ");
    page.append("No key is needed beside `spark.plugins=io.zerohop.spark.ZerohopPlugin`, ");
    page.append("with which Spark 3.5 also needs ");
    page.append("`spark.shuffle.manager=io.zerohop.spark.ZerohopShuffleManager`. ");
    page.append("A size without a unit is in bytes, a duration without one in milliseconds.\n\n");
    page.append("| key | type | default | range | since | what it does |\n");
    page.append("| --- | --- | --- | --- | --- | --- |\n");
    for (final Keys.Row row : Keys.rows()) {
      page.append(
          String.format(
              Locale.ROOT,
              "| `%s` | %s | %s | %s | %s | %s |%n",
              row.name(),
              row.type(),
              row.defaultText().isEmpty() ? "" : "`" + row.defaultText() + "`",
              row.range(),
              row.since(),
              row.doc()));
    }
    return page.toString();
  }

  @Test
  void everyDefaultIsValidAndNoneIsUnknown() {
    assertThat(ZerohopConf.of(new SparkConf(false))).isEqualTo(Config.defaults());
    assertThat(ZerohopConf.unknown(new SparkConf(false))).isEmpty();
  }

  @Test
  void aBadValueNamesItsKeyAndWhatIsExpected() {
    final SparkConf conf = new SparkConf(false).set("spark.zerohop.segment.size", "12parsecs");
    assertThatThrownBy(() -> ZerohopConf.of(conf))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("spark.zerohop.segment.size=12parsecs")
        .hasMessageContaining("128m");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "spark.zerohop.segment.size=1023k",
        "spark.zerohop.segment.size=1025m",
        "spark.zerohop.pool.size=0",
        "spark.zerohop.pool.size=-1",
        "spark.zerohop.pool.size=9999999t",
        "spark.zerohop.spill.start=1.1",
        "spark.zerohop.spill.start=NaN",
        "spark.zerohop.port=65536",
        "spark.zerohop.port=99999999999",
        "spark.zerohop.connect.timeout=0",
        "spark.zerohop.connect.timeout=auto",
        "spark.zerohop.ucx.idle=999",
        "spark.zerohop.segment.idle=-1s",
        "spark.zerohop.checksum.enabled=yes",
        "spark.zerohop.paths=local,peers",
        "spark.zerohop.paths=",
        "spark.zerohop.sent.codec=gzip",
        "spark.zerohop.test.device=gpu"
      })
  void whatIsOutOfRangeOrNoValueIsRefused(final String setting) {
    final String[] parts = setting.split("=", 2);
    final SparkConf conf = new SparkConf(false).set(parts[0], parts[1]);
    assertThatThrownBy(() -> ZerohopConf.of(conf))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith(setting + " is not valid: expected ");
  }

  @Test
  void aMisspeltKeyIsReported() {
    final SparkConf conf = new SparkConf(false).set("spark.zerohop.pool.sise", "1g");
    assertThat(ZerohopConf.unknown(conf)).containsExactly("spark.zerohop.pool.sise");
  }

  @Test
  void aKeyThatWentIsReportedAndItsValueNotRead() {
    final SparkConf conf = new SparkConf(false).set("spark.zerohop.ucx.mode", "message");
    assertThat(ZerohopConf.unknown(conf)).containsExactly("spark.zerohop.ucx.mode");
  }

  @Test
  void aFormerNameWorksUnlessTheNewOneIsSetAndIsReported() {
    final SparkConf conf = new SparkConf(false).set("spark.zerohop.fetch.landing.size", "1g");
    assertThat(ZerohopConf.of(conf).fetch().receiveBuffers()).isEqualTo(1L << 30);
    assertThat(ZerohopConf.unknown(conf)).isEmpty();
    assertThat(ZerohopConf.renamed(conf))
        .containsExactly(
            "spark.zerohop.fetch.landing.size (now spark.zerohop.fetch.receiveBuffers)");
    conf.set("spark.zerohop.fetch.receiveBuffers", "64m");
    assertThat(ZerohopConf.of(conf).fetch().receiveBuffers()).isEqualTo(64L << 20);
  }

  @Test
  void aBadValueOfAFormerNameIsReportedByThatName() {
    final SparkConf conf = new SparkConf(false).set("spark.zerohop.fetch.landing.size", "1");
    assertThatThrownBy(() -> ZerohopConf.of(conf))
        .hasMessageContaining("spark.zerohop.fetch.landing.size=1 is not valid");
  }

  @Test
  void valuesAreParsed() {
    final SparkConf conf =
        new SparkConf(false)
            .set("spark.zerohop.paths", "peer, STAGED")
            .set("spark.zerohop.pool.size", "3g")
            .set("spark.zerohop.request.timeout", "250ms")
            .set("spark.zerohop.node.id", " a node ")
            .set("spark.zerohop.socket.dir", "/a/folder")
            .set("spark.zerohop.checksum.enabled", "FALSE");
    final Config read = ZerohopConf.of(conf);
    assertThat(read.paths()).containsExactlyElementsOf(List.of(BlockPath.PEER, BlockPath.STAGED));
    assertThat(read.pool().size()).isEqualTo(3L << 30);
    assertThat(read.requestTimeout()).isEqualTo(Duration.ofMillis(250));
    assertThat(read.nodeId()).isEqualTo("a node");
    assertThat(read.socketDir()).isEqualTo(java.nio.file.Path.of("/a/folder"));
    assertThat(read.checksum()).isFalse();
    assertThat(read.device()).isEqualTo(Config.defaults().device());
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"1048576", "2m", "2mb", "2M", "3MiB", "1g", "1048576b", "1.5m", "2 m", "m", "1tb"})
  void sizesAreWhatTheyAreToSpark(final String text) {
    assertSame(
        () -> ZerohopConf.of(set("pool.size", text)).pool().size(),
        () -> JavaUtils.byteStringAsBytes(text));
  }

  @ParameterizedTest
  @ValueSource(strings = {"2000", "2s", "2S", "1m", "1min", "1h", "1d", "2ms", "2sec", "1.5s", "s"})
  void durationsAreWhatTheyAreToSpark(final String text) {
    assertSame(
        () -> ZerohopConf.of(set("connect.timeout", text)).connectTimeout().toMillis(),
        () -> JavaUtils.timeStringAsMs(text));
  }

  private static SparkConf set(final String name, final String text) {
    return new SparkConf(false).set(Keys.PREFIX + name, text);
  }

  private interface Reading {
    long read();
  }

  private static void assertSame(final Reading ours, final Reading sparks) {
    final long expected;
    try {
      expected = sparks.read();
    } catch (final RuntimeException e) {
      assertThatThrownBy(ours::read).isInstanceOf(IllegalArgumentException.class);
      return;
    }
    assertThat(ours.read()).isEqualTo(expected);
  }

  @Test
  void anotherValueOfAKeyLeavesTheOthersAsTheyAre() {
    final Config config =
        Config.defaults().with("pool.size", 1 << 20).with("spill.start", 1).with("port", 7L);
    assertThat(config.pool().size()).isEqualTo(1 << 20);
    assertThat(config.pool().segmentSize()).isEqualTo(128 << 20);
    assertThat(config.spill().start()).isEqualTo(1);
    assertThat(config.port()).isEqualTo(7);
    assertThat(config.fetch()).isEqualTo(Config.defaults().fetch());
    assertThatThrownBy(() -> config.with("pool.sise", 1))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("spark.zerohop.pool.sise");
  }

  /** Messages name keys in plain words, which nothing else would find to be stale. */
  @Test
  void everyKeyThatTheCodeNamesIsDeclared() throws IOException {
    final TreeSet<String> unknown = new TreeSet<>();
    int named = 0;
    for (final String module : List.of("../plugin", "../shuffle", "../native")) {
      try (Stream<java.nio.file.Path> files = Files.walk(java.nio.file.Path.of(module))) {
        for (final java.nio.file.Path file :
            files.filter(it -> it.toString().matches(".*/src/main/java/.*\\.java")).toList()) {
          final Matcher keys = NAMED.matcher(Files.readString(file));
          while (keys.find()) {
            named++;
            if (!Keys.isKnown(keys.group())) {
              unknown.add(keys.group() + " in " + file.getFileName());
            }
          }
        }
      }
    }
    assertThat(unknown).isEmpty();
    assertThat(named).isPositive();
  }
}
