package io.zerohop.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Message;
import io.zerohop.device.Topology;
import io.zerohop.device.Topology.Reach;
import io.zerohop.device.Topology.Shape;
import io.zerohop.device.Topology.View;
import io.zerohop.device.cuda.TopologyReader.Nvml;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;

class TopologyTest {
  /** A machine that is made up: who is at the end of each GPU's links. */
  private static final class Machine implements TopologyReader.Links {
    private final List<List<Integer>> links = new ArrayList<>();
    private final boolean peers;
    private int lost = -1;
    private boolean gone;

    Machine(final int gpus, final boolean peers) {
      for (int i = 0; i < gpus; i++) {
        links.add(new ArrayList<>());
      }
      this.peers = peers;
    }

    Machine link(final int from, final int to) {
      links.get(from).add(to);
      return this;
    }

    Machine links(final int from, final int to, final int times) {
      for (int i = 0; i < times; i++) {
        link(from, to).link(to, from);
      }
      return this;
    }

    Machine switched(final int gpu, final int times) {
      for (int i = 0; i < times; i++) {
        link(gpu, -1);
      }
      return this;
    }

    /** The GPU falls off the bus: it names itself once, and answers nothing any more. */
    Machine losing(final int gpu) {
      lost = gpu;
      return this;
    }

    @Override
    public int count() {
      return links.size();
    }

    @Override
    public String uuid(final int gpu) {
      return "GPU-" + gpu;
    }

    /** The last GPU comes first on the bus, and domains are written in two ways. */
    @Override
    public String busId(final int gpu) {
      if (gpu == lost && gone) {
        return null;
      }
      gone |= gpu == lost;
      return String.format(Locale.ROOT, "00000000:%02X:00.0", 0xF0 - gpu);
    }

    @Override
    public int linkType(final int gpu, final int link) {
      if (link >= links.get(gpu).size()) {
        return Nvml.NONE;
      }
      return links.get(gpu).get(link) < 0 ? Nvml.SWITCH : Nvml.GPU;
    }

    @Override
    public String linkBusId(final int gpu, final int link) {
      return String.format(Locale.ROOT, "0000:%02x:00.0", 0xF0 - links.get(gpu).get(link));
    }

    @Override
    public boolean canRead(final int from, final int to) {
      return peers;
    }

    @Override
    public String fabric(final int gpu) {
      return null;
    }
  }

  @Test
  void switchLinksCountForEveryPairThatHasThem() {
    final Machine machine = new Machine(3, true);
    machine.switched(0, 18).switched(1, 18).switched(2, 12);
    final Topology topology = TopologyReader.read(machine);
    assertThat(topology.shape()).isEqualTo(Shape.FULLY_CONNECTED);
    assertThat(topology.gpus())
        .extracting(Topology.Gpu::uuid)
        .containsExactly("GPU-2", "GPU-1", "GPU-0");
    assertThat(topology.links()[1][2]).isEqualTo(18);
    assertThat(topology.links()[0][1]).isEqualTo(12);
    assertThat(topology.reach("GPU-0", "GPU-2")).isEqualTo(Reach.NVLINK);
    assertThat(topology.reach("GPU-0", "GPU-0")).isEqualTo(Reach.SAME);
  }

  @Test
  void eightGpusWithFourNeighboursAreACubeMesh() {
    final Machine machine = new Machine(8, true);
    for (int quad = 0; quad < 8; quad += 4) {
      for (int i = 0; i < 4; i++) {
        for (int j = i + 1; j < 4; j++) {
          machine.links(quad + i, quad + j, 1);
        }
      }
    }
    for (int i = 0; i < 4; i++) {
      machine.links(i, i + 4, 2);
    }
    final Topology topology = TopologyReader.read(machine);
    assertThat(topology.shape()).isEqualTo(Shape.HYBRID_CUBE_MESH);
    assertThat(topology.reach("GPU-0", "GPU-4")).isEqualTo(Reach.NVLINK);
    assertThat(topology.reach("GPU-0", "GPU-5")).isEqualTo(Reach.PCIE);
  }

  @Test
  void pairsWithoutPeerAccessGoThroughTheHost() {
    final Topology topology = TopologyReader.read(new Machine(2, false));
    assertThat(topology.shape()).isEqualTo(Shape.UNKNOWN);
    assertThat(topology.reach("GPU-0", "GPU-1")).isEqualTo(Reach.HOST);
    assertThat(topology.reach("GPU-0", "GPU-elsewhere")).isEqualTo(Reach.HOST);
  }

  @Test
  void sharedGpusAndOtherViewsAreNamed() {
    assertThat(Topology.problems(List.of(new View("1", "GPU-0", "a"), new View("2", "GPU-1", "a"))))
        .isEmpty();
    final List<Message> problems =
        Topology.problems(
            List.of(
                new View("2", "GPU-0", "a"),
                new View("1", "GPU-0", "a"),
                new View("3", "GPU-1", "b")));
    assertThat(problems).hasSize(2);
    assertThat(problems.get(0).where()).isEqualTo("executors 1, 2, GPU GPU-0");
    assertThat(problems.get(1).why()).isEqualTo("executors 1, 2 see a, executors 3 see b");
    assertThat(problems).extracting(Message::code).containsExactly("ZH-5002", "ZH-5003");
  }

  @Test
  void aGpuThatIsLostMeanwhileIsStillInOrder() {
    final Topology topology = TopologyReader.read(new Machine(3, true).links(0, 1, 1).losing(1));
    assertThat(topology.gpus())
        .extracting(Topology.Gpu::busId)
        .containsExactly("00000000:EE:00.0", "00000000:EF:00.0", "00000000:F0:00.0");
    assertThat(topology.reach("GPU-0", "GPU-1")).isEqualTo(Reach.NVLINK);
  }

  @Test
  void fingerprintsTellMachinesApart() {
    final String one = TopologyReader.read(new Machine(2, true)).fingerprint();
    assertThat(TopologyReader.read(new Machine(2, true)).fingerprint()).isEqualTo(one);
    assertThat(TopologyReader.read(new Machine(2, false)).fingerprint()).isNotEqualTo(one);
    assertThat(TopologyReader.read(new Machine(2, true).links(0, 1, 1)).fingerprint())
        .isNotEqualTo(one);
  }

  @Test
  @EnabledIf(value = "io.zerohop.device.cuda.Gpus#one", disabledReason = "no GPU here")
  void theMachinesOwnGpusAreFound() {
    final Topology topology = TopologyReader.read();
    System.out.println("topology: " + topology.fingerprint() + " " + topology.gpus());
    try (CudaDevice device = new CudaDevice(0, 1)) {
      System.out.println("device: " + device.describe());
      assertThat(topology.gpus()).extracting(Topology.Gpu::uuid).contains(device.uuid());
      assertThat(Path.of("/sys/bus/pci/devices", device.pciAddress(), "vendor"))
          .as("of the GPU, whom NVML has in %s", topology.gpus())
          .hasContent("0x10de");
      for (final Topology.Gpu other : topology.gpus()) {
        assertThat(topology.reach(device.uuid(), other.uuid())).isNotNull();
      }
    }
  }
}
