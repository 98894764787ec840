package io.zerohop.spark.rapids.api;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.compat.LinkedMember;
import io.zerohop.spark.rapids.api.RapidsMember.RapidsFeature;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What the probe looks for is what our classes use, and it finds that in the fake. */
class RapidsProbeTest {
  private static final Path RESOURCE =
      Path.of("src/main/resources/io/zerohop/spark/rapids/api", RapidsProbe.LINKS);

  @Test
  void itLooksForAllThatOurClassesLink() throws IOException, URISyntaxException {
    final Path classes =
        Path.of(RapidsProbe.class.getProtectionDomain().getCodeSource().getLocation().toURI());
    final List<String> links = List.copyOf(OurLinks.of(classes));
    if (Boolean.getBoolean("zerohop.docs.write")) {
      Files.createDirectories(RESOURCE.getParent());
      Files.write(RESOURCE, links);
    }
    assertThat(Files.readAllLines(RESOURCE))
        .as("%s is stale; run the tests with -Dzerohop.docs.write=true", RESOURCE)
        .isEqualTo(links);
    assertThat(links).contains("SHUFFLE ai.rapids.cudf.CudaMemInfo free J");
  }

  @Test
  void theFakeHasAllButPartitionings() {
    final RapidsProbe probe = RapidsProbe.look();
    assertThat(probe.missing(RapidsFeature.SHUFFLE)).isNull();
    assertThat(probe.missing(RapidsFeature.ENV_OF_CONF)).isNull();
    assertThat(probe.missing(RapidsFeature.SPILL_STORE)).isNull();
    assertThat(probe.missing(RapidsFeature.KUDO)).contains("GpuHashPartitioning");
    assertThat(probe.missing(RapidsFeature.ENV_WITH_DISK)).contains("RapidsDiskBlockManager");
  }

  @Test
  void aMemberWithAnotherDescriptorIsMissing() {
    final ClassLoader loader = RapidsProbe.class.getClassLoader();
    final String cuda = "SHUFFLE ai.rapids.cudf.CudaMemInfo ";
    assertThat(LinkedMember.of(cuda + "free J").isIn(loader)).isTrue();
    assertThat(LinkedMember.of(cuda + "free I").isIn(loader)).isFalse();
    assertThat(LinkedMember.of(cuda + "free ()J").isIn(loader)).isFalse();
    assertThat(LinkedMember.of("SHUFFLE ai.rapids.cudf.Gone").isIn(loader)).isFalse();
    assertThat(LinkedMember.of(cuda + "free (Lai/rapids/cudf/Gone;)J").isIn(loader)).isFalse();
  }

  @Test
  void whatLacksBothWaysToMakeTheEnvironmentCannotShuffle() {
    final RapidsProbe probe = RapidsProbe.of(ClassLoader.getPlatformClassLoader());
    assertThat(probe.missing(RapidsFeature.ENV_OF_CONF)).contains("init");
    assertThat(probe.missing(RapidsFeature.ENV_WITH_DISK)).contains("init");
    assertThat(probe.missing(RapidsFeature.SHUFFLE)).isNotNull();
  }
}
