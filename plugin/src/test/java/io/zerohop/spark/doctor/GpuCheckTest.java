package io.zerohop.spark.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Message;
import io.zerohop.spark.doctor.Examination.Notes;
import io.zerohop.spark.doctor.Finding.Verdict;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Checks and rates of GPUs, on devices of the host. */
class GpuCheckTest {
  private final HostGpus gpus = new HostGpus(3, 18);

  private List<Finding> findings(final boolean wanted, final long onTheBus) {
    final Notes notes = new Notes();
    new GpuCheck(gpus, wanted, () -> onTheBus).run(notes);
    assertThat(gpus.held()).as("segments and streams").isZero();
    return notes.findings();
  }

  private static Finding one(final List<Finding> findings, final Item item) {
    return findings.stream().filter(it -> it.item() == item).findFirst().orElseThrow();
  }

  @Test
  void everyPairMapsAndCopies() {
    final List<Finding> findings = findings(true, 3);
    assertThat(findings).allMatch(it -> it.verdict() == Verdict.OK);
    assertThat(one(findings, Item.P2P).message().happened()).startsWith("6 of 6 pairs");
    assertThat(one(findings, Item.NVLINK).message().happened())
        .contains("FULLY_CONNECTED")
        .contains("- NV18 NV18 | NV18 - NV18 | NV18 NV18 -");
  }

  @Test
  void pairsWithoutPeerAccessAreNamed() {
    gpus.peers = false;
    final List<Finding> findings = findings(true, 3);
    assertThat(one(findings, Item.NVLINK).verdict()).isEqualTo(Verdict.WARN);
    assertThat(one(findings, Item.P2P).verdict()).isEqualTo(Verdict.WARN);
    assertThat(one(findings, Item.P2P).message().remedy()).contains("nvidia-smi topo");
  }

  @Test
  void aMissingDriverMattersAsFarAsAGpuIsWanted() {
    gpus.absence = Message.of("this machine has no CUDA driver");
    assertThat(one(findings(false, 0), Item.DRIVER).verdict()).isEqualTo(Verdict.SKIP);
    assertThat(one(findings(false, 2), Item.DRIVER).verdict()).isEqualTo(Verdict.WARN);
    final Finding wanted = one(findings(true, 0), Item.DRIVER);
    assertThat(wanted.verdict()).isEqualTo(Verdict.FAIL);
    assertThat(wanted.message().remedy()).contains("--gpus all");
  }

  @Test
  void aGpuWithoutKernelsDoesNotKeepOthersFromBeingTried() {
    gpus.refusal = "cuda:2: cuModuleLoadDataEx failed";
    final List<Finding> findings = findings(true, 3);
    assertThat(findings.stream().filter(it -> it.item() == Item.KERNELS))
        .extracting(Finding::verdict)
        .containsExactly(Verdict.OK, Verdict.OK, Verdict.FAIL);
    assertThat(one(findings, Item.P2P).message().happened()).startsWith("2 of 2 pairs");
  }

  @Test
  void ratesOfAllPairsAreMeasured() throws Exception {
    final Notes notes = new Notes();
    RateCheck.gpus(gpus, 4 << 20).run(notes);
    assertThat(gpus.held()).isZero();
    assertThat(notes.rates()).hasSize(3 + 3 + 6).allMatch(rate -> rate.gigabytes() > 0);
    assertThat(notes.rates().stream().filter(rate -> rate.path().equals("nvlink")))
        .hasSize(6)
        .allMatch(rate -> rate.expected() == 18 * RateCheck.EACH_NVLINK);
    // Memory of the host is far slower than such links.
    assertThat(notes.findings()).anyMatch(it -> it.verdict() == Verdict.WARN);
  }
}
