package io.zerohop.shuffle.transport.ucx.adapter;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.transport.ucx.adapter.PciDevice.HostFiles;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A machine of two sockets, each with a GPU and an adapter on one switch, and what is added to it.
 */
class AdapterChoiceTest {
  private static final String GPU = "0000:18:00.0";
  private static final String FAR_GPU = "0000:98:00.0";
  private static final String SWITCH = "pci0000:15/0000:15:01.0/0000:16:00.0/";
  private static final String FAR_SWITCH = "pci0000:95/0000:95:01.0/0000:96:00.0/";
  private static final String NDR = "400 Gb/sec (4X NDR)";
  private static final String ACTIVE = "4: ACTIVE";

  @TempDir private Path root;
  private FakeHost host;

  @BeforeEach
  void twoGpus() {
    host = new FakeHost(root);
    host.gpu(GPU, SWITCH + "0000:17:00.0", 0);
    host.gpu(FAR_GPU, FAR_SWITCH + "0000:97:00.0", 1);
  }

  private FakeHost.Adapter near(final String name, final int function) {
    return host.adapter(name, "0000:1a:00." + function, SWITCH + "0000:17:01.0", 0);
  }

  private FakeHost.Adapter far(final String name) {
    return host.adapter(name, "0000:9a:00.0", FAR_SWITCH + "0000:97:01.0", 1);
  }

  private AdapterChoice choice() {
    return AdapterChoice.of(host.files(), GPU);
  }

  @Test
  void theNearestIsChosen() {
    near("mlx5_1", 0).infiniband();
    far("mlx5_0").infiniband();
    assertThat(choice().describe())
        .isEqualTo("mlx5_1:1: nearest to GPU 0000:18:00.0 (PIX, others SYS)");
    assertThat(AdapterChoice.of(host.files(), FAR_GPU).ports()).containsExactly("mlx5_0:1");
  }

  @Test
  void bothPortsOfAnAdapterAreAsNear() {
    near("mlx5_1", 0)
        .infiniband()
        .port(2, ACTIVE, "InfiniBand", NDR)
        .gid(2, 0, "fe80:0000:0000:0000:a088:c203:00f5:0002", "");
    far("mlx5_0").infiniband();
    assertThat(choice().ports()).containsExactly("mlx5_1:1", "mlx5_1:2");
    assertThat(choice().rails()).isTrue();
  }

  /** Only then do executors that see one GPU each, as in containers, not choose the same ones. */
  @Test
  void gpusThatAnExecutorDoesNotUseCountAsWell() {
    final String third = "0000:19:00.0";
    host.gpu(third, SWITCH + "0000:17:02.0", 0);
    near("mlx5_0", 0).infiniband();
    near("mlx5_1", 1).infiniband();
    far("mlx5_2").infiniband();
    assertThat(choice().ports()).containsExactly("mlx5_0:1");
    assertThat(AdapterChoice.of(host.files(), third).ports()).containsExactly("mlx5_1:1");
  }

  @Test
  void whatIsNoGpuTakesNoShare() {
    host.pci("0000:19:00.0", SWITCH + "0000:17:02.0", 0, "0x10de", "0x068000");
    near("mlx5_0", 0).infiniband();
    near("mlx5_1", 1).infiniband();
    far("mlx5_2").infiniband();
    assertThat(choice().ports()).containsExactly("mlx5_0:1", "mlx5_1:1");
  }

  @Test
  void aPortWithoutALinkIsLeftOut() {
    near("mlx5_1", 0).port(1, "1: DOWN", "InfiniBand", NDR);
    far("mlx5_0").infiniband();
    assertThat(choice().ports()).containsExactly("mlx5_0:1");
    assertThat(choice().reason()).endsWith("; left out: mlx5_1:1 (not active)");
  }

  @Test
  void aSlowerPortIsLeftOut() {
    near("mlx5_1", 0).port(1, ACTIVE, "InfiniBand", "100 Gb/sec (4X EDR)");
    far("mlx5_0").infiniband();
    assertThat(choice().ports()).containsExactly("mlx5_0:1");
    assertThat(choice().reason()).endsWith("; left out: mlx5_1:1 (slower than 400 Gb/s)");
  }

  /** The faster network is that whose ports move more together, not that of the fastest port. */
  @Test
  void portsOfTheOtherLinkLayerAreLeftOut() {
    host.adapter("mlx5_0", "0000:1a:00.0", SWITCH + "0000:17:01.0", 0)
        .port(1, ACTIVE, "Ethernet", NDR);
    host.adapter("mlx5_1", "0000:1b:00.0", SWITCH + "0000:17:02.0", 0)
        .port(1, ACTIVE, "InfiniBand", "200 Gb/sec (4X HDR)");
    for (int i = 2; i < 4; i++) {
      host.adapter("mlx5_" + i, "0000:9a:00." + i, FAR_SWITCH + "0000:97:01.0", 1)
          .port(1, ACTIVE, "InfiniBand", "200 Gb/sec (4X HDR)");
    }
    assertThat(choice().ports()).containsExactly("mlx5_1:1");
    assertThat(choice().reason()).endsWith("; left out: mlx5_0:1 (not InfiniBand)");
  }

  @Test
  void aVirtualFunctionBesideItsAdapterIsLeftOut() {
    final FakeHost.Adapter physical = near("mlx5_0", 0).infiniband();
    final FakeHost.Adapter function = near("mlx5_5", 1).infiniband();
    FakeHost.link(function.device().resolve("physfn"), physical.device());
    far("mlx5_1").infiniband();
    assertThat(choice().ports()).containsExactly("mlx5_0:1");
    assertThat(choice().reason())
        .endsWith("; left out: mlx5_5:1 (virtual function of an adapter in this list)");
  }

  /** As in a container that was given this one and not the adapter it belongs to. */
  @Test
  void aVirtualFunctionAloneIsUsed() {
    final FakeHost.Adapter function = near("mlx5_5", 1).infiniband();
    FakeHost.link(
        function.device().resolve("physfn"), function.device().resolveSibling("0000:1a:00.0"));
    far("mlx5_1").infiniband();
    assertThat(choice().ports()).containsExactly("mlx5_5:1");
  }

  @Test
  void anAdapterThatThisProcessMayNotOpenIsLeftOut() throws Exception {
    near("mlx5_0", 0).infiniband();
    far("mlx5_1").infiniband();
    host.verbs("uverbs0", "mlx5_0");
    Files.createDirectories(host.verbs("uverbs1", "mlx5_1").getParent());
    Files.createFile(host.verbs("uverbs1", "mlx5_1"));
    assertThat(choice().ports()).containsExactly("mlx5_1:1");
    assertThat(choice().reason())
        .endsWith("; left out: mlx5_0:1 (not open to this process in /dev/infiniband)");
  }

  @Test
  void anExecutorWithoutAGpuUsesAllPorts() {
    near("mlx5_1", 0).infiniband();
    far("mlx5_0").infiniband();
    final AdapterChoice choice = AdapterChoice.of(host.files(), null);
    assertThat(choice.ports()).containsExactly("mlx5_1:1", "mlx5_0:1");
    assertThat(choice.rails()).isFalse();
    assertThat(choice.reason()).isEqualTo("all that can be used, since this executor has no GPU");
  }

  @Test
  void aGpuThatIsNotFoundIsNearNothing() {
    near("mlx5_1", 0).infiniband();
    far("mlx5_0").infiniband();
    final AdapterChoice choice = AdapterChoice.of(host.files(), "0000:55:00.0");
    assertThat(choice.ports()).hasSize(2);
    assertThat(choice.reason()).endsWith("since the PCIe path of GPU 0000:55:00.0 is not known");
  }

  @Test
  void aMachineWithoutAdaptersHasNone() {
    assertThat(choice().ports()).isEmpty();
    assertThat(choice().describe()).isEqualTo("no RDMA port: there is none that can be used");
  }

  @Test
  void aMachineWithoutAnyFilesHasNone() {
    assertThat(AdapterChoice.of(new HostFiles(root.resolve("none")), GPU).ports()).isEmpty();
  }

  /** Soft-RoCE, as in a virtual machine without an adapter. */
  @Test
  void aSoftwareAdapterIsWhereItsInterfaceIs() {
    final Path nic = host.pci("0000:1a:00.0", SWITCH + "0000:17:01.0", 0, "0x8086", "0x020000");
    host.software("rxe0", "eth0", nic).port(1, ACTIVE, "Ethernet", "2.5 Gb/sec (1X SDR)");
    assertThat(choice().describe())
        .isEqualTo("rxe0:1: nearest to GPU 0000:18:00.0 (PIX), used by 2 GPUs");
  }

  @Test
  void aSoftwareAdapterWithoutHardwareIsUsedToo() throws Exception {
    Files.createDirectories(root.resolve("sys/devices/virtual/net/veth0"));
    host.software("rxe0", "veth0", root.resolve("sys/devices/virtual/net/veth0"))
        .port(1, ACTIVE, "Ethernet", "2.5 Gb/sec (1X SDR)");
    assertThat(choice().describe())
        .isEqualTo("rxe0:1: all that can be used, since no PCIe path to them is known");
  }

  /** A driver that says less than others is believed to have what UCX can use. */
  @Test
  void portsOfWhichNothingIsSaidAreUsed() throws Exception {
    Files.createDirectories(near("efa_0", 0).folder().resolve("ports/1"));
    assertThat(choice().ports()).containsExactly("efa_0:1");
  }
}
