package io.zerohop.spark.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.doctor.Examination.Notes;
import io.zerohop.spark.doctor.Finding.Verdict;
import io.zerohop.spark.doctor.SparkChecks.NamedJars;
import io.zerohop.spark.doctor.SparkChecks.SparkCheck;
import io.zerohop.spark.rapids.api.RapidsProbe;
import io.zerohop.spark.rapids.setup.Preflight;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What settings come to, where nothing or something else is wrong than in PlantedFaultsTest. */
class SparkCheckTest {
  private final SparkConf conf =
      new SparkConf(false)
          .set("spark.shuffle.manager", "io.zerohop.spark.ZerohopShuffleManager")
          .set("spark.plugins", "com.nvidia.spark.SQLPlugin,io.zerohop.spark.ZerohopPlugin");
  private Preflight seen = new Preflight("26.08.1", RapidsProbe.complete(), null, null);

  private Finding find(final Item item) {
    final Notes notes = new Notes();
    new SparkCheck(conf, null, "4.2.0", seen, 1L << 30).run(notes);
    final List<Finding> found = notes.findings().stream().filter(it -> it.item() == item).toList();
    assertThat(found).as("%s", notes.findings()).isNotEmpty();
    return found.get(0);
  }

  @Test
  void soundSettingsAreOk() {
    for (final Item item :
        List.of(Item.SPARK, Item.RAPIDS, Item.MANAGER, Item.STEPS_ASIDE, Item.GPU_SHUFFLES)) {
      assertThat(find(item).verdict()).as("%s", item).isEqualTo(Verdict.OK);
    }
  }

  @Test
  void anotherManagerIsAWarning() {
    conf.set("spark.shuffle.manager", "sort");
    assertThat(find(Item.MANAGER).message().remedy())
        .isEqualTo("set spark.shuffle.manager=io.zerohop.spark.ZerohopShuffleManager");
  }

  @Test
  void aBadValueIsAFailureAndAnUnknownKeyAWarning() {
    conf.set("spark.zerohop.pool.sise", "1g");
    assertThat(find(Item.MANAGER).verdict()).isEqualTo(Verdict.WARN);
    assertThat(find(Item.MANAGER).message().happened()).contains("spark.zerohop.pool.sise");
    conf.set("spark.zerohop.pool.size", "much");
    assertThat(find(Item.MANAGER).verdict()).isEqualTo(Verdict.FAIL);
  }

  @Test
  void aCodecKeepsGpuShufflesAway() {
    conf.set("spark.rapids.shuffle.compression.codec", "lz4");
    assertThat(find(Item.GPU_SHUFFLES).message().remedy())
        .isEqualTo("set spark.rapids.shuffle.compression.codec=none");
  }

  @Test
  void nobodyIsToldOfAuthenticationThatIsOff() {
    conf.set("spark.zerohop.rapids.enabled", "false");
    assertThat(find(Item.GPU_SHUFFLES).message().remedy())
        .isEqualTo("set spark.zerohop.rapids.enabled=true to allow it");
  }

  @Test
  void ourPluginHasToBeBesideRapids() {
    conf.set("spark.plugins", "com.nvidia.spark.SQLPlugin");
    assertThat(find(Item.GPU_SHUFFLES).message().remedy())
        .contains("io.zerohop.spark.ZerohopPlugin");
  }

  @Test
  void aMissingRapidsJarIsSaid() {
    seen = new Preflight(null, null, null, null);
    assertThat(find(Item.RAPIDS).verdict()).isEqualTo(Verdict.WARN);
    assertThat(find(Item.RAPIDS).message().remedy()).contains("rapids-4-spark");
  }

  @Test
  void jarsThatSettingsNameAreLookedAt(@TempDir final Path folder) throws IOException {
    final Path jar = folder.resolve("rapids-4-spark.jar");
    try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar))) {
      out.putNextEntry(new JarEntry("rapids4spark-version-info.properties"));
      out.write("version=26.08.7".getBytes(StandardCharsets.US_ASCII));
    }
    for (final Map<String, String> named :
        List.of(
            Map.of("spark.driver.extraClassPath", "/nowhere/a.jar:" + jar),
            Map.of("spark.driver.extraClassPath", folder + "/*"),
            Map.of("spark.jars", "hdfs://far/b.jar, file:" + jar))) {
      seen = NamedJars.with(Settings.of(named), Preflight::lookAtVersion);
      assertThat(seen.rapids()).as("%s", named).isEqualTo("26.08.7");
      assertThat(find(Item.RAPIDS).verdict()).as("%s", named).isEqualTo(Verdict.OK);
    }
    assertThat(NamedJars.with(Settings.of(Map.of()), Preflight::lookAtVersion).rapids())
        .isEqualTo(Preflight.lookAtVersion().rapids());
  }

  @Test
  void theWayOfOtherNodesIsSaid() {
    assertThat(find(Item.OTHER_NODES).verdict()).isEqualTo(Verdict.OK);
    assertThat(find(Item.OTHER_NODES).message().happened())
        .contains("are sent over Spark's connections");
    conf.set("spark.io.encryption.enabled", "true");
    assertThat(find(Item.OTHER_NODES).verdict()).isEqualTo(Verdict.WARN);
    assertThat(find(Item.OTHER_NODES).message().happened())
        .contains("are staged: spark.io.encryption.enabled");
    conf.set("spark.authenticate", "true").set("spark.network.crypto.enabled", "true");
    assertThat(find(Item.OTHER_NODES).message().happened())
        .contains("are sent over Spark's connections");
    conf.set("spark.zerohop.paths", "local,peer,staged");
    assertThat(find(Item.OTHER_NODES).verdict()).isEqualTo(Verdict.WARN);
    assertThat(find(Item.OTHER_NODES).message().happened()).contains("does not have 'sent'");
  }

  @Test
  void encryptionForbidsUcx() {
    conf.set("spark.zerohop.ucx.trustedNetwork", "true");
    assertThat(find(Item.OTHER_NODES).verdict()).isEqualTo(Verdict.OK);
    conf.set("spark.network.crypto.enabled", "true");
    assertThat(find(Item.OTHER_NODES).verdict()).isEqualTo(Verdict.WARN);
  }

  @Test
  void sizesAreThoseThatTheExecutorTakes() {
    conf.set("spark.zerohop.pool.size", "3g").set("spark.zerohop.device.pool.size", "2g");
    assertThat(find(Item.SIZES).message().happened()).startsWith("3072 MiB of shared memory");
    // YARN ends containers by what Spark asks for, so nothing is left of this one.
    conf.set("spark.zerohop.pool.size", "auto").set("spark.master", "yarn");
    assertThat(find(Item.SIZES).verdict()).isEqualTo(Verdict.WARN);
    assertThat(find(Item.SIZES).message().remedy()).contains("spark.executor.memoryOverhead=");
  }
}
