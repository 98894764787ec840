package io.zerohop.shuffle.transport.ucx.adapter;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.transport.ucx.adapter.PciDevice.PciDistance;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PciDeviceTest {
  @TempDir private Path root;

  private static PciDistance distance(final String one, final String other) {
    return distance(one, 0, other, 0);
  }

  private static PciDistance distance(
      final String one, final int node, final String other, final int otherNode) {
    final PciDistance distance = device(one, node).to(device(other, otherNode));
    assertThat(device(other, otherNode).to(device(one, node))).isEqualTo(distance);
    return distance;
  }

  private static PciDevice device(final String way, final int node) {
    return new PciDevice(way + "!", List.of(way.split("/")), node);
  }

  @Test
  void twoPortsOfOneSwitch() {
    assertThat(distance("root/port/up/down1", "root/port/up/down2")).isEqualTo(PciDistance.PIX);
  }

  @Test
  void twoFunctionsOfOneDevice() {
    assertThat(distance("root/port", "root/port")).isEqualTo(PciDistance.PIX);
  }

  /** As of an adapter that has a switch of its own, with a GPU behind it. */
  @Test
  void aSwitchBehindASwitch() {
    assertThat(distance("root/port/up/down1/up2/down3", "root/port/up/down2"))
        .isEqualTo(PciDistance.PXB);
  }

  @Test
  void twoRootPortsOfOneHostBridge() {
    assertThat(distance("root/port1/up/down", "root/port2")).isEqualTo(PciDistance.PHB);
    assertThat(distance("root", "root")).isEqualTo(PciDistance.PHB);
  }

  @Test
  void twoHostBridgesAreNearIfTheirNumaNodeIsKnownToBeTheSame() {
    assertThat(distance("root1/port", 1, "root2/port", 1)).isEqualTo(PciDistance.NODE);
    assertThat(distance("root1/port", 0, "root2/port", 1)).isEqualTo(PciDistance.SYS);
    assertThat(distance("root1/port", -1, "root2/port", -1)).isEqualTo(PciDistance.SYS);
  }

  @Test
  void thePathBehindALinkNamesTheBridges() {
    final FakeHost host = new FakeHost(root);
    host.gpu("0000:18:00.0", "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0", 1);
    assertThat(PciDevice.of(host.files().pciDevice("00000000:18:00.0")))
        .contains(
            new PciDevice(
                "0000:18:00.0",
                List.of("pci0000:15", "0000:15:01.0", "0000:16:00.0", "0000:17:00.0"),
                1));
  }

  /** As virtio's interfaces do, and the functions that one adapter is divided into. */
  @Test
  void whatAPciDeviceHasIsWhereThatIs() throws Exception {
    final Path device = root.resolve("sys/devices/pci0000:00/0000:00:03.0");
    FakeHost.write(device.resolve("numa_node"), "0");
    Files.createDirectories(device.resolve("virtio2"));
    FakeHost.link(root.resolve("link"), device.resolve("virtio2"));
    assertThat(PciDevice.of(root.resolve("link")))
        .contains(new PciDevice("0000:00:03.0", List.of("pci0000:00"), 0));
  }

  @Test
  void whatIsNotOnTheBusIsNowhere() throws Exception {
    Files.createDirectories(root.resolve("sys/devices/virtual/net/lo"));
    FakeHost.link(root.resolve("link"), root.resolve("sys/devices/virtual/net/lo"));
    assertThat(PciDevice.of(root.resolve("link"))).isEmpty();
    assertThat(PciDevice.of(root.resolve("none"))).isEmpty();
  }
}
