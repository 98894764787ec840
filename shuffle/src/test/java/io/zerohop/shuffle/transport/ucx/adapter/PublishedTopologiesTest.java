package io.zerohop.shuffle.transport.ucx.adapter;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.transport.ucx.adapter.PciDevice.PciDistance;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * What executors of published machines choose, each with the GPU of one row. The words are those of
 * the listing that is named; where it does not say of what kind an adapter is, the test does.
 */
class PublishedTopologiesTest {
  @TempDir private Path root;
  private FakeHost host;

  @BeforeEach
  void anEmptyMachine() {
    host = new FakeHost(root);
  }

  /** Which port each GPU's executor chooses, in the order of the GPUs. */
  private List<List<String>> choices(final Listing listing) {
    return IntStream.range(0, listing.gpus()).mapToObj(gpu -> choice(gpu).ports()).toList();
  }

  private AdapterChoice choice(final int gpu) {
    return AdapterChoice.of(host.files(), Listing.gpu(gpu));
  }

  /** The tree in the folder has the distances that were printed. */
  private void assertDistances(final Listing listing) {
    for (int gpu = 0; gpu < listing.gpus(); gpu++) {
      final PciDevice from = device(Listing.gpu(gpu));
      for (int adapter = 0; adapter < listing.adapters(); adapter++) {
        assertThat(from.to(device(Listing.adapter(adapter))))
            .as("GPU%d to NIC%d", gpu, adapter)
            .isEqualTo(listing.distance(gpu, adapter));
      }
    }
  }

  private PciDevice device(final String address) {
    return PciDevice.of(host.files().pciDevice(address)).orElseThrow();
  }

  private static List<String> port(final int adapter) {
    return List.of("mlx5_" + adapter + ":1");
  }

  /**
   * Eight GPUs, eight compute adapters and two with two ports each for storage and management, all
   * at one rate: listing of an 8 x H100 in github.com/vllm-project/vllm/issues/6746. Which adapter
   * belongs to which GPU is the NVIDIA DGX H100 User Guide's Table 6.
   */
  @Test
  void dgxH100HasAnAdapterForEachGpu() {
    final Listing listing =
        new Listing(
            """
            GPU0 0 PXB  NODE NODE NODE NODE NODE SYS  SYS  SYS  SYS  SYS  SYS
            GPU1 0 NODE NODE NODE PXB  NODE NODE SYS  SYS  SYS  SYS  SYS  SYS
            GPU2 0 NODE NODE NODE NODE PXB  NODE SYS  SYS  SYS  SYS  SYS  SYS
            GPU3 0 NODE NODE NODE NODE NODE PXB  SYS  SYS  SYS  SYS  SYS  SYS
            GPU4 1 SYS  SYS  SYS  SYS  SYS  SYS  PXB  NODE NODE NODE NODE NODE
            GPU5 1 SYS  SYS  SYS  SYS  SYS  SYS  NODE NODE NODE PXB  NODE NODE
            GPU6 1 SYS  SYS  SYS  SYS  SYS  SYS  NODE NODE NODE NODE PXB  NODE
            GPU7 1 SYS  SYS  SYS  SYS  SYS  SYS  NODE NODE NODE NODE NODE PXB
            """);
    listing.addGpus(host);
    IntStream.range(0, listing.adapters())
        .forEach(adapter -> listing.addAdapter(host, adapter).infiniband());
    assertDistances(listing);
    assertThat(choices(listing))
        .containsExactly(port(0), port(3), port(4), port(5), port(6), port(9), port(10), port(11));
    assertThat(choice(1).describe())
        .isEqualTo("mlx5_3:1: nearest to GPU 0000:21:00.0 (PXB, others NODE, SYS)");
  }

  /**
   * Eight GPUs with an adapter each and two more, where the NUMA nodes of adapters are not known:
   * listing of an HGX H100 in github.com/NVIDIA/nccl/issues/1264.
   */
  @Test
  void hgxH100HasAnAdapterForEachGpu() {
    final Listing listing =
        new Listing(
            """
            GPU0 0 PIX SYS SYS SYS SYS SYS SYS SYS SYS SYS
            GPU1 0 SYS PIX SYS SYS SYS SYS SYS SYS SYS SYS
            GPU2 0 SYS SYS PIX SYS SYS SYS SYS SYS SYS SYS
            GPU3 0 SYS SYS SYS SYS SYS PIX SYS SYS SYS SYS
            GPU4 1 SYS SYS SYS SYS SYS SYS PIX SYS SYS SYS
            GPU5 1 SYS SYS SYS SYS SYS SYS SYS PIX SYS SYS
            GPU6 1 SYS SYS SYS SYS SYS SYS SYS SYS PIX SYS
            GPU7 1 SYS SYS SYS SYS SYS SYS SYS SYS SYS PIX
            """);
    listing.addGpus(host);
    IntStream.range(0, listing.adapters())
        .forEach(adapter -> listing.addAdapter(host, adapter).infiniband());
    assertDistances(listing);
    assertThat(choices(listing))
        .containsExactly(port(0), port(1), port(2), port(5), port(6), port(7), port(8), port(9));
  }

  /**
   * Eight GPUs, two for each of four adapters, and two more adapters: listing of an 8 x A100 in
   * github.com/NVIDIA/nccl/issues/1435 (the last word of the last row is cut off there).
   */
  @Test
  void fourAdaptersAreUsedByTwoGpusEach() {
    final Listing listing =
        new Listing(
            """
            GPU0 3 SYS PXB SYS SYS SYS SYS
            GPU1 3 SYS PXB SYS SYS SYS SYS
            GPU2 1 PXB SYS SYS SYS SYS SYS
            GPU3 1 PXB SYS SYS SYS SYS SYS
            GPU4 7 SYS SYS SYS SYS SYS PXB
            GPU5 7 SYS SYS SYS SYS SYS PXB
            GPU6 5 SYS SYS PXB SYS SYS SYS
            GPU7 5 SYS SYS PXB SYS SYS SYS
            """);
    listing.addGpus(host);
    IntStream.range(0, listing.adapters())
        .forEach(adapter -> listing.addAdapter(host, adapter).infiniband());
    assertDistances(listing);
    assertThat(choices(listing))
        .containsExactly(port(1), port(1), port(0), port(0), port(5), port(5), port(2), port(2));
    assertThat(choice(7).reason()).endsWith("(PXB, others SYS), used by 2 GPUs");
  }

  /**
   * Two adapters for each GPU and one more for each socket, in one network: listing of an 8 x H100
   * in github.com/vllm-project/vllm/issues/16359.
   */
  @Test
  void twoAdaptersOfOneSwitchAreUsedTogether() {
    final Listing listing =
        new Listing(
            """
            GPU0 0 PXB  PXB  NODE NODE NODE NODE NODE NODE NODE SYS SYS SYS SYS SYS SYS SYS SYS SYS
            GPU1 0 NODE NODE NODE PXB  PXB  NODE NODE NODE NODE SYS SYS SYS SYS SYS SYS SYS SYS SYS
            GPU2 0 NODE NODE NODE NODE NODE PXB  PXB  NODE NODE SYS SYS SYS SYS SYS SYS SYS SYS SYS
            GPU3 0 NODE NODE NODE NODE NODE NODE NODE PXB  PXB  SYS SYS SYS SYS SYS SYS SYS SYS SYS
            GPU4 1 SYS SYS SYS SYS SYS SYS SYS SYS SYS PXB  PXB  NODE NODE NODE NODE NODE NODE NODE
            GPU5 1 SYS SYS SYS SYS SYS SYS SYS SYS SYS NODE NODE NODE PXB  PXB  NODE NODE NODE NODE
            GPU6 1 SYS SYS SYS SYS SYS SYS SYS SYS SYS NODE NODE NODE NODE NODE PXB  PXB  NODE NODE
            GPU7 1 SYS SYS SYS SYS SYS SYS SYS SYS SYS NODE NODE NODE NODE NODE NODE NODE PXB  PXB
            """);
    listing.addGpus(host);
    final String[] routes = new String[listing.adapters()];
    for (int adapter = 0; adapter < routes.length; adapter++) {
      listing
          .addAdapter(host, adapter)
          .roce("rdma" + adapter, String.format(Locale.ROOT, "0ae0:00%02x", adapter));
      routes[adapter] = "rdma" + adapter + " 0000E00A 0000F0FF"; // 10.224.0.0/12
    }
    host.routes(routes);
    assertDistances(listing);
    assertThat(choice(0).rails()).isTrue();
    assertThat(choices(listing).get(0)).containsExactly("mlx5_0:1", "mlx5_1:1");
    assertThat(choices(listing).get(5)).containsExactly("mlx5_12:1", "mlx5_13:1");
    assertThat(choices(listing).stream().flatMap(List::stream)).hasSize(16).doesNotHaveDuplicates();
  }

  /**
   * A virtual machine with eight GPUs and eight adapters, each on a root port of the one host
   * bridge: {@code lspci -tvv} in github.com/NVIDIA/nccl-tests/issues/256, which makes it PHB
   * throughout.
   */
  @Test
  void aVirtualMachineWithoutTopologyUsesAllAdapters() {
    for (int i = 0; i < 8; i++) {
      host.gpu(
          Listing.gpu(i),
          String.format(Locale.ROOT, "pci0000:00/0000:00:%02x.%x", 1 + i / 8, i),
          -1);
      host.adapter("mlx5_" + i, Listing.adapter(i), "pci0000:00/0000:00:02." + i, -1).infiniband();
    }
    assertThat(device(Listing.gpu(0)).to(device(Listing.adapter(7)))).isEqualTo(PciDistance.PHB);
    assertThat(choice(3).ports())
        .containsExactlyElementsOf(
            IntStream.range(0, 8).mapToObj(i -> "mlx5_" + i + ":1").toList());
    assertThat(choice(3).reason())
        .isEqualTo("all that can be used, since PCIe does not tell them apart (PHB to every GPU)");
  }

  /**
   * A virtual machine where each device is in a PCI domain of its own and only NUMA nodes tell them
   * apart, four GPUs and four adapters in each: Azure's ND H100 v5, by
   * jingchaozhang.github.io/Decoding-Azure-NCCL-Topology-Files.
   */
  @Test
  void adaptersOfANumaNodeAreSharedOutAmongItsGpus() {
    for (int i = 0; i < 8; i++) {
      final String gpuDomain = String.format(Locale.ROOT, "%04x", 1 + i);
      final String domain = String.format(Locale.ROOT, "%04x", 0x101 + i);
      host.gpu(gpuDomain + ":00:00.0", "LNXSYSTM:00/VMBUS:00/pci" + gpuDomain + ":00", i / 4);
      host.adapter(
              "mlx5_ib" + i,
              domain + ":00:00.0",
              "LNXSYSTM:00/VMBUS:00/pci" + domain + ":00",
              i / 4)
          .infiniband();
    }
    for (int i = 0; i < 8; i++) {
      final AdapterChoice choice =
          AdapterChoice.of(host.files(), String.format(Locale.ROOT, "%04x:00:00.0", 1 + i));
      assertThat(choice.ports()).containsExactly("mlx5_ib" + i + ":1");
      assertThat(choice.reason()).contains("(NODE, others NODE, SYS)");
    }
  }

  /**
   * A compute tray of GB200 NVL72, where everything is SYS: listing in
   * github.com/sgl-project/sglang/issues/11208 (the last row is cut off there). By NVIDIA's
   * Multi-Node Tuning Guide the tray's BlueField-3 adapters are on Ethernet; that these are the
   * last two, and the others InfiniBand, is the test's.
   */
  @Test
  void gb200UsesTheFourAdaptersOfInfiniBand() {
    final Listing listing =
        new Listing(
            """
            GPU0 0 SYS SYS SYS SYS SYS SYS
            GPU1 0 SYS SYS SYS SYS SYS SYS
            GPU2 1 SYS SYS SYS SYS SYS SYS
            GPU3 1 SYS SYS SYS SYS SYS SYS
            """);
    listing.addGpus(host);
    addTray(listing);
    assertDistances(listing);
    assertThat(choices(listing))
        .allMatch(ports -> ports.equals(List.of("mlx5_0:1", "mlx5_1:1", "mlx5_2:1", "mlx5_3:1")));
    assertThat(choice(0).reason())
        .isEqualTo(
            "all that can be used, since PCIe does not tell them apart (SYS to every GPU);"
                + " left out: mlx5_4:1, mlx5_5:1 (not InfiniBand)");
  }

  /**
   * The same tray where the kernel has the NUMA nodes of adapters: GPUs 0 and 1 are in node 0, and
   * GPUs 2 and 3 in node 1 (github.com/ishandhanani/srt-slurm/pull/164).
   */
  @Test
  void gb200WithNumaNodesUsesOneEach() {
    final Listing listing =
        new Listing(
            """
            GPU0 0 NODE NODE SYS  SYS  NODE SYS
            GPU1 0 NODE NODE SYS  SYS  NODE SYS
            GPU2 1 SYS  SYS  NODE NODE SYS  NODE
            GPU3 1 SYS  SYS  NODE NODE SYS  NODE
            """);
    listing.addGpus(host);
    addTray(listing);
    assertDistances(listing);
    assertThat(choices(listing)).containsExactly(port(0), port(1), port(2), port(3));
  }

  private void addTray(final Listing listing) {
    for (int adapter = 0; adapter < 4; adapter++) {
      listing.addAdapter(host, adapter).infiniband();
    }
    for (int adapter = 4; adapter < 6; adapter++) {
      listing.addAdapter(host, adapter).port(1, "4: ACTIVE", "Ethernet", "400 Gb/sec (4X NDR)");
    }
  }
}
