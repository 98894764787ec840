package io.zerohop.shuffle.transport.ucx.adapter;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Two GPUs with an adapter near each: where the two adapters do not reach one another's network,
 * executors keep both.
 */
class FabricTest {

  @TempDir private Path root;
  private FakeHost host;

  @BeforeEach
  void twoGpus() {
    host = new FakeHost(root);
    host.gpu("0000:18:00.0", "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0", 0);
    host.gpu("0000:98:00.0", "pci0000:95/0000:95:01.0/0000:96:00.0/0000:97:00.0", 1);
  }

  private FakeHost.Adapter first() {
    return host.adapter(
        "mlx5_0", "0000:1a:00.0", "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0", 0);
  }

  private FakeHost.Adapter second() {
    return host.adapter(
        "mlx5_1", "0000:9a:00.0", "pci0000:95/0000:95:01.0/0000:96:00.0/0000:97:01.0", 1);
  }

  private void roce() {
    first().roce("rdma0", "0a01:0007"); // 10.1.0.7
    second().roce("rdma1", "0a02:0007"); // 10.2.0.7
  }

  private void assertOneNetwork(final boolean one) {
    final AdapterChoice choice = AdapterChoice.of(host.files(), "0000:18:00.0");
    if (one) {
      assertThat(choice.ports()).containsExactly("mlx5_0:1");
    } else {
      assertThat(choice.ports()).containsExactly("mlx5_0:1", "mlx5_1:1");
      assertThat(choice.rails()).isFalse();
      assertThat(choice.reason()).endsWith("since they are not known to be of one network");
    }
  }

  @Test
  void subnetsOfInfiniBandAreToldByTheirPrefix() {
    first().infiniband();
    second()
        .port(1, "4: ACTIVE", "InfiniBand", "400 Gb/sec (4X NDR)")
        .gid(1, 0, "fe80:0000:0000:0001:a088:c203:00f5:0002", "");
    assertOneNetwork(false);
  }

  @Test
  void interfacesOfOneSubnetReachOneAnother() {
    roce();
    host.routes("rdma0 0000000A 000000FF", "rdma1 0000000A 000000FF"); // 10.0.0.0/8
    assertOneNetwork(true);
  }

  @Test
  void interfacesOfTwoSubnetsDoNot() {
    roce();
    host.routes("rdma0 0000010A 0000FFFF", "rdma1 0000020A 0000FFFF"); // 10.1, 10.2.0.0/16
    assertOneNetwork(false);
  }

  /** The kernel would send what is for the other's subnet by the other, and UCX goes by that. */
  @Test
  void aRouteThatTheOtherHasABetterOneForDoesNotCount() {
    roce();
    host.routes(
        "rdma0 0000010A 0000FFFF",
        "rdma0 0000000A 000000FF",
        "rdma1 0000020A 0000FFFF",
        "rdma1 0000000A 000000FF");
    assertOneNetwork(false);
  }

  @Test
  void aDefaultRouteOfAnotherInterfaceDoesNotCount() {
    roce();
    host.routes("eth0 00000000 00000000");
    assertOneNetwork(false);
  }

  @Test
  void interfacesWithoutRoutesAreNotKnownToReachAnything() {
    roce();
    assertOneNetwork(false);
  }

  @Test
  void portsWithoutAddressesAreNotKnownToBeOfOneNetwork() {
    first().port(1, "4: ACTIVE", "Ethernet", "400 Gb/sec (4X NDR)");
    second().port(1, "4: ACTIVE", "Ethernet", "400 Gb/sec (4X NDR)");
    assertOneNetwork(false);
  }

  /** What serves storage may be in another network: no executor chooses it. */
  @Test
  void onlyPortsThatSomebodyChoosesHaveToReachOneAnother() {
    first().infiniband();
    second().infiniband();
    host.adapter("mlx5_2", "0000:c1:00.0", "pci0000:c0/0000:c0:01.0", 1)
        .port(1, "4: ACTIVE", "InfiniBand", "400 Gb/sec (4X NDR)")
        .gid(1, 0, "fe80:0000:0000:0001:a088:c203:00f5:0003", "");
    assertOneNetwork(true);
  }

  /** Nothing but the network says whether such ports may be used for one transfer. */
  @Test
  void portsThatPcieDoesNotTellApartAreRailsOnlyInOneNetwork(@TempDir final Path another) {
    host = new FakeHost(another);
    host.gpu("0000:18:00.0", "pci0000:00/0000:00:05.0", -1);
    for (int i = 1; i < 3; i++) {
      host.adapter("mlx5_" + i, "0000:0" + i + ":00.0", "pci0000:00/0000:00:0" + i + ".0", -1)
          .roce("rdma" + i, "0a01:000" + i);
    }
    host.routes("rdma1 0000010A 0000FFFF", "rdma2 0000010A 0000FFFF"); // 10.1.0.0/16
    assertThat(AdapterChoice.of(host.files(), "0000:18:00.0").rails()).isTrue();
    host.routes("rdma1 0000010A 0000FFFF");
    assertThat(AdapterChoice.of(host.files(), "0000:18:00.0").rails()).isFalse();
  }
}
