package io.zerohop.spark.rdmaproof;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.rdmaproof.ProofLine.ProofWords;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a host has: adapters of hardware and of software are told apart. */
class HostFactsTest {
  @TempDir private Path root;

  /** As the kernel lists it: by a link into the tree of devices. */
  private void adapter(final String name, final String place, final boolean hardware)
      throws IOException {
    final Path device = Files.createDirectories(root.resolve(place).resolve(name));
    final Path port = Files.createDirectories(device.resolve("ports/1"));
    Files.writeString(device.resolve("fw_ver"), "28.39.1002\n");
    Files.writeString(port.resolve("rate"), "400 Gb/sec (4X NDR)\n");
    Files.writeString(port.resolve("state"), "4: ACTIVE\n");
    if (hardware) {
      Files.createDirectories(device.resolve("device"));
    }
    Files.createDirectories(root.resolve("class"));
    Files.createSymbolicLink(root.resolve("class").resolve(name), device);
  }

  private HostFacts facts() {
    return new HostFacts(HostFacts.adapters(root.resolve("class")));
  }

  @Test
  void hardwareHasADevice() throws IOException {
    adapter("mlx5_0", "sys/devices/pci0000:00/infiniband", true);
    assertThat(facts().hasHardware()).isTrue();
    assertThat(facts().hasSoftware()).isFalse();
    assertThat(facts().all().get(HostFacts.HARDWARE))
        .contains("mlx5_0:1", "28.39.1002", "400 Gb/sec", "ACTIVE");
  }

  @Test
  void softwareHasNoneOrIsAmongVirtualOnes() throws IOException {
    adapter("rxe0", "sys/devices/virtual/infiniband", true);
    adapter("siw0", "sys/devices/elsewhere/infiniband", false);
    assertThat(facts().hasHardware()).isFalse();
    assertThat(facts().all().get(HostFacts.SOFTWARE)).contains("rxe0:1", "siw0:1");
  }

  @Test
  void aHostWithoutAdaptersSaysNone() {
    assertThat(facts().hasAny()).isFalse();
    assertThat(facts().all()).containsValue("none");
  }

  @Test
  void theSizeOfBar1IsThatOfTheSecondRange() throws IOException {
    final Path file = root.resolve("resource");
    Files.writeString(
        file,
        "0x00000000ed000000 0x00000000edffffff 0x0000000000040200\n"
            + "0x0000002000000000 0x0000003fffffffff 0x000000000014220c\n");
    assertThat(HostFacts.bar1(file)).isEqualTo(128L << 30);
    Files.writeString(file, "garbage");
    assertThat(HostFacts.bar1(file)).isZero();
  }

  @Test
  void theOtherSideReadsTheSame() {
    final HostFacts facts = HostFacts.read(0);
    final HostFacts read =
        HostFacts.parse(
            ProofWords.said(
                ProofWords.split(ProofWords.join(ProofWords.ok(facts.words().toArray())))));
    assertThat(read).isEqualTo(facts);
    assertThat(read.isOtherHost(facts)).isFalse();
    assertThat(read.isOtherHost(new HostFacts(Map.of(HostFacts.BOOT, "another")))).isTrue();
    assertThat(read.isOtherHost(new HostFacts(Map.of()))).as("not known").isFalse();
  }
}
