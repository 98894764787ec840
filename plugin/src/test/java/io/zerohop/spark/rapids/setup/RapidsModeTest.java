package io.zerohop.spark.rapids.setup;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Message;
import io.zerohop.device.cuda.CudaDevice;
import io.zerohop.spark.rapids.api.RapidsMember.RapidsFeature;
import io.zerohop.spark.rapids.api.RapidsProbe;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

/** What is decided before RAPIDS starts. There is no RAPIDS here, so its version is made up. */
class RapidsModeTest {
  private static final Preflight KNOWN = seen("26.08.1");

  private static Preflight seen(final String rapids) {
    return new Preflight(rapids, RapidsProbe.complete(), null, null);
  }

  private static SparkConf conf() {
    return new SparkConf(false)
        .set("spark.plugins", "com.nvidia.spark.SQLPlugin,io.zerohop.spark.ZerohopPlugin")
        .set("spark.shuffle.manager", "io.zerohop.spark.ZerohopShuffleManager");
  }

  @Test
  void nothingStandsInTheWayOfTheTwoSettings() {
    final SparkConf conf = conf();
    RapidsMode.prepare(conf, KNOWN);
    assertThat(RapidsMode.isActive(conf)).isTrue();
    assertThat(conf.get(RapidsMode.MODE)).isEqualTo("CACHE_ONLY");
    // As much as executors have where no GPU is seen; a GPU of the driver is not theirs.
    assertThat(conf.contains("spark.zerohop.device.pool.size")).isFalse();
    assertThat(Long.parseLong(conf.get(RapidsMode.RESERVE)))
        .isGreaterThan((640L << 20) + (1L << 30));
  }

  @Test
  void theReserveFollowsThePool() {
    final SparkConf conf = conf().set("spark.zerohop.device.pool.size", "8g");
    RapidsMode.prepare(conf, KNOWN);
    assertThat(conf.get(RapidsMode.RESERVE)).isEqualTo(Long.toString((640L << 20) + (8L << 30)));
  }

  @Test
  void whatTheUserReservedStays() {
    final SparkConf conf = conf().set(RapidsMode.RESERVE, "3g");
    RapidsMode.prepare(conf, KNOWN);
    assertThat(conf.get(RapidsMode.RESERVE)).isEqualTo("3g");
  }

  @Test
  void ourRuleComesBesideTheUsersExtensionsOnce() {
    final String ours = RapidsExtension.class.getName();
    final SparkConf conf = conf();
    RapidsMode.prepare(conf, KNOWN);
    assertThat(conf.get(RapidsMode.EXTENSIONS)).isEqualTo(ours);
    final SparkConf set = conf().set(RapidsMode.EXTENSIONS, "org.example.Theirs");
    RapidsMode.prepare(set, KNOWN);
    assertThat(set.get(RapidsMode.EXTENSIONS)).isEqualTo("org.example.Theirs," + ours);
    final SparkConf named = conf().set(RapidsMode.EXTENSIONS, ours + " , org.example.Theirs");
    RapidsMode.prepare(named, KNOWN);
    assertThat(named.get(RapidsMode.EXTENSIONS)).isEqualTo(ours + " , org.example.Theirs");
  }

  @Test
  void obstaclesLeaveTheModeAloneAndNameTheRemedy() {
    final String[][] obstacles = {
      {"spark.shuffle.service.enabled", "true", "spark.shuffle.service.enabled=false"},
      {"spark.shuffle.sort.io.plugin.class", "org.example.Remote", "org.example.Remote"},
      {"spark.authenticate", "true", "while spark.authenticate is on"},
      {"spark.rapids.shuffle.compression.codec", "lz4", "codec=none"},
      {"spark.rapids.shuffle.mode", "MULTITHREADED", "remove that setting"},
      {"spark.zerohop.rapids.enabled", "false", "spark.zerohop.rapids.enabled=true"},
    };
    for (final String[] obstacle : obstacles) {
      final SparkConf conf = conf().set(obstacle[0], obstacle[1]);
      final String before = conf.get(RapidsMode.MODE, "unset");
      assertThat(RapidsMode.obstacle(conf, conf.get(RapidsMode.MODE, ""), KNOWN))
          .asString()
          .contains(obstacle[2]);
      RapidsMode.prepare(conf, KNOWN);
      assertThat(RapidsMode.isActive(conf)).isFalse();
      assertThat(conf.get(RapidsMode.MODE, "unset")).isEqualTo(before);
      assertThat(conf.contains(RapidsMode.RESERVE)).isFalse();
    }
  }

  @Test
  void nobodyIsToldToTurnAuthenticationOff() {
    final SparkConf conf = conf().set("spark.authenticate", "true");
    assertThat(RapidsMode.obstacle(conf, "", KNOWN))
        .asString()
        .doesNotContain("spark.authenticate=false");
  }

  @Test
  void whatIsOlderThanTheMatrixIsRefused() {
    for (final String version : new String[] {null, "24.10.1", "23.12.0"}) {
      final SparkConf conf = conf();
      RapidsMode.prepare(conf, seen(version));
      assertThat(RapidsMode.isActive(conf)).as("%s", version).isFalse();
    }
    assertThat(RapidsMode.obstacle(conf(), "", seen("24.10.1")))
        .asString()
        .contains("24.10.1")
        .contains("older than 24.12");
  }

  @Test
  void allReleasesOfTheMatrixAreTakenAndNewerOnesIfAllIsThere() {
    final String[] versions = {"24.12.1", "25.04.0", "25.12.0", "26.06.0", "26.08.1", "26.10.0"};
    for (final String version : versions) {
      final SparkConf conf = conf();
      RapidsMode.prepare(conf, seen(version));
      assertThat(RapidsMode.isActive(conf)).as("%s", version).isTrue();
      // Before 26.08 RAPIDS' serializer is not there, or has bugs.
      assertThat(RapidsMode.has(conf, RapidsFeature.KUDO))
          .as("%s", version)
          .isEqualTo(version.compareTo("26.07") > 0);
      assertThat(RapidsMode.has(conf, RapidsFeature.SPILL_STORE))
          .as("%s", version)
          .isEqualTo(!version.startsWith("24.12"));
    }
  }

  @Test
  void aRapidsThatLacksSomethingIsNamedWithIt() {
    // None is there at all: whatever this loader sees, it sees nothing of RAPIDS.
    final RapidsProbe probe = RapidsProbe.of(ClassLoader.getPlatformClassLoader());
    final Preflight seen = new Preflight("26.10.0", probe, null, null);
    assertThat(RapidsMode.obstacle(conf(), "", seen))
        .asString()
        .contains("26.10.0")
        .contains("GpuShuffleDependency useGPUShuffle")
        .contains("docs/compatibility.md");
    final SparkConf conf = conf();
    RapidsMode.prepare(conf, seen);
    assertThat(RapidsMode.isActive(conf)).isFalse();
  }

  /** What is seen of a RAPIDS whose class of keys has these constants. */
  private static Preflight seenWithKeys(final String constants) {
    final ClassLoader loader =
        new ClassLoader(RapidsModeTest.class.getClassLoader()) {
          @Override
          public InputStream getResourceAsStream(final String name) {
            return name.endsWith("/RapidsConf$.class")
                ? new ByteArrayInputStream(constants.getBytes(StandardCharsets.ISO_8859_1))
                : super.getResourceAsStream(name);
          }
        };
    return new Preflight("26.10.0", RapidsProbe.of(loader), null, null);
  }

  @Test
  void theNewNamesOfKeysWinWhereTheyAreKnown() {
    final Preflight knows = seenWithKeys("...spark.cudf.shuffle.mode...");
    final SparkConf conf =
        conf()
            .set("spark.rapids.shuffle.compression.codec", "lz4")
            .set("spark.cudf.shuffle.compression.codec", "none")
            .set("spark.cudf.memory.gpu.reserve", "3g");
    RapidsMode.prepare(conf, knows);
    assertThat(RapidsMode.isActive(conf)).isTrue();
    assertThat(conf.get("spark.cudf.shuffle.mode")).isEqualTo("CACHE_ONLY");
    assertThat(conf.get("spark.rapids.shuffle.mode")).isEqualTo("CACHE_ONLY");
    assertThat(conf.get("spark.cudf.memory.gpu.reserve")).isEqualTo("3g");
    assertThat(conf.contains(RapidsMode.RESERVE)).isFalse();

    final SparkConf forced = conf().set("spark.cudf.shuffle.mode", "UCX");
    forced.set("spark.cudf.shuffle.compression.codec", "lz4");
    assertThatThrownBy(() -> RapidsMode.prepare(forced, knows))
        .hasMessageContaining("spark.cudf.shuffle.mode=UCX")
        .hasMessageContaining("spark.cudf.shuffle.compression.codec=none");

    final SparkConf follows = conf();
    RapidsMode.prepare(follows, knows);
    RapidsMode.prepareExecutor(follows, 40L << 30);
    final String reserve = follows.get(RapidsMode.RESERVE);
    assertThat(follows.get("spark.cudf.memory.gpu.reserve")).isEqualTo(reserve);
    assertThat(
            follows.get(
                "spark.plugins.internal.conf.com.nvidia.spark.SQLPlugin"
                    + ".spark.cudf.memory.gpu.reserve"))
        .isEqualTo(reserve);
  }

  @Test
  void theNewNamesOfKeysMeanNothingWhereTheyAreNotKnown() {
    final SparkConf conf = conf().set("spark.cudf.shuffle.compression.codec", "lz4");
    RapidsMode.prepare(conf, seenWithKeys("...spark.rapids.shuffle.mode..."));
    assertThat(RapidsMode.isActive(conf)).isTrue();
    assertThat(conf.contains("spark.cudf.shuffle.mode")).isFalse();
  }

  @Test
  void aJarWithoutKernelsIsNoticedBeforeAnythingIsPlanned() {
    final SparkConf conf = conf();
    final Preflight seen =
        new Preflight("26.08.1", RapidsProbe.complete(), Message.of("built without nvcc"), null);
    assertThat(RapidsMode.obstacle(conf, "", seen)).asString().contains("built without nvcc");
    RapidsMode.prepare(conf, seen);
    assertThat(RapidsMode.isActive(conf)).isFalse();
  }

  @Test
  void whatOnlyTheDriversMachineLacksForbidsNothing() {
    final SparkConf conf = conf();
    RapidsMode.prepare(
        conf,
        new Preflight(
            "26.08.1", RapidsProbe.complete(), null, Message.of("no native library here")));
    assertThat(RapidsMode.isActive(conf)).isTrue();
  }

  @Test
  void thePreflightSeesWhatIsHere() {
    final Preflight seen = Preflight.look();
    assertThat(seen.rapids()).isNull();
    assertThat(seen.library()).isNull();
    assertThat(seen.kernels()).isEqualTo(CudaDevice.missingKernels());
  }

  @Test
  void aModeThatCannotWorkStopsTheApplication() {
    for (final String mode : new String[] {"UCX", "CACHE_ONLY"}) {
      final SparkConf conf =
          conf().set(RapidsMode.MODE, mode).set("spark.rapids.shuffle.compression.codec", "lz4");
      assertThatThrownBy(() -> RapidsMode.prepare(conf, KNOWN))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining(mode)
          .hasMessageContaining("remove that setting")
          .hasMessageContaining("none")
          .hasMessageMatching(".* \\[ZH-\\d{4}]");
    }
  }

  @Test
  void withoutRapidsOrOurManagerNothingIsTouched() {
    final SparkConf alone = conf().set("spark.plugins", "io.zerohop.spark.ZerohopPlugin");
    final SparkConf sorted = conf().set("spark.shuffle.manager", "sort");
    final SparkConf disabled = conf().set("spark.zerohop.enabled", "false");
    for (final SparkConf conf : new SparkConf[] {alone, sorted, disabled}) {
      final int settings = conf.getAll().length;
      RapidsMode.prepare(conf, KNOWN);
      assertThat(conf.getAll()).hasSize(settings);
    }
  }

  @Test
  void itSaysWhatDecidesTheSizeOfReduceTasks() {
    assertThat(RapidsMode.reduceTasks(new SparkConf(false)))
        .isEqualTo("coalesced up to 256 MiB in stages that run on the GPU");
    for (final String key :
        new String[] {
          "spark.sql.adaptive.coalescePartitions.parallelismFirst",
          "spark.sql.adaptive.coalescePartitions.minPartitionNum",
          "spark.sql.adaptive.advisoryPartitionSizeInBytes"
        }) {
      assertThat(RapidsMode.reduceTasks(new SparkConf(false).set(key, "1")))
          .isEqualTo("Spark decides, since " + key + " is set");
    }
    for (final String key :
        new String[] {
          "spark.sql.adaptive.enabled", "spark.sql.adaptive.coalescePartitions.enabled"
        }) {
      assertThat(RapidsMode.reduceTasks(new SparkConf(false).set(key, "false")))
          .isEqualTo("Spark coalesces none, since " + key + " is false");
    }
    assertThat(RapidsMode.reduceTasks(new SparkConf(false).set(CoalesceRule.KEY, "0")))
        .isEqualTo("Spark decides, since " + CoalesceRule.KEY + " is 0");
  }
}
