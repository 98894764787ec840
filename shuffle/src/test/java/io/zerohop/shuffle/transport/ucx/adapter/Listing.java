package io.zerohop.shuffle.transport.ucx.adapter;

import io.zerohop.shuffle.transport.ucx.adapter.PciDevice.PciDistance;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/**
 * A machine from the columns of adapters that {@code nvidia-smi topo -m} printed for its GPUs. What
 * is nearer than the host bridge gets a switch in common, and every other pair what its words say.
 */
final class Listing {
  private final List<PciDistance[]> rows = new ArrayList<>();
  private final List<Integer> nodes = new ArrayList<>();

  /**
   * @param text a line for each GPU: its name, its NUMA node, and its distance to each adapter
   */
  Listing(final String text) {
    for (final String line : text.strip().split("\n")) {
      final String[] words = line.trim().split("\\s+");
      final PciDistance[] row = new PciDistance[words.length - 2];
      for (int i = 0; i < row.length; i++) {
        row[i] = PciDistance.valueOf(words[i + 2]);
      }
      rows.add(row);
      nodes.add(Integer.parseInt(words[1]));
    }
  }

  int gpus() {
    return rows.size();
  }

  int adapters() {
    return rows.get(0).length;
  }

  PciDistance distance(final int gpu, final int adapter) {
    return rows.get(gpu)[adapter];
  }

  static String gpu(final int index) {
    return String.format(Locale.ROOT, "0000:%02x:00.0", 0x20 + index);
  }

  static String adapter(final int index) {
    return String.format(Locale.ROOT, "0000:%02x:00.0", 0x60 + index);
  }

  /** Puts the GPUs into a machine. */
  void addGpus(final FakeHost host) {
    for (int gpu = 0; gpu < gpus(); gpu++) {
      final int first = firstLike(gpu);
      final String way =
          switch (nearestOf(gpu)) {
            case PIX -> upperPort(first) + lowerPort(first, gpu);
            case PXB -> upperPort(first) + lowerPort(first, gpu) + switchBehind(first, gpu);
            default -> rootPort(gpu);
          };
      host.gpu(gpu(gpu), way, nodes.get(gpu));
    }
  }

  /** Puts an adapter into a machine; its ports are left to the caller. */
  FakeHost.Adapter addAdapter(final FakeHost host, final int index) {
    int closest = 0;
    int node = -1;
    for (int gpu = 0; gpu < gpus(); gpu++) {
      closest = distance(gpu, index).compareTo(distance(closest, index)) < 0 ? gpu : closest;
      node = distance(gpu, index) == PciDistance.NODE ? nodes.get(gpu) : node;
    }
    final int number = gpus() + index;
    final int first = firstLike(closest);
    final String way =
        switch (distance(closest, index)) {
          case PIX, PXB -> upperPort(first) + lowerPort(first, number);
          default -> rootPort(number);
        };
    return host.adapter("mlx5_" + index, adapter(index), way, node);
  }

  /** The first GPU of the same switch. */
  private int firstLike(final int gpu) {
    for (int other = 0; other < gpu; other++) {
      if (nearestOf(gpu).belowHostBridge() && Arrays.equals(rows.get(other), rows.get(gpu))) {
        return other;
      }
    }
    return gpu;
  }

  private PciDistance nearestOf(final int gpu) {
    return Arrays.stream(rows.get(gpu)).min(Comparator.naturalOrder()).orElseThrow();
  }

  /** A root port below a host bridge of its own. */
  private static String rootPort(final int root) {
    return String.format(Locale.ROOT, "pci%04x:00/%04x:00:01.0", root, root);
  }

  /** The upper port of a switch, and one of its lower ports. */
  private static String upperPort(final int root) {
    return rootPort(root) + String.format(Locale.ROOT, "/%04x:01:00.0", root);
  }

  private static String lowerPort(final int root, final int number) {
    return String.format(Locale.ROOT, "/%04x:02:%02x.0", root, number);
  }

  /** Both ports of another switch behind a lower port. */
  private static String switchBehind(final int root, final int number) {
    return String.format(
        Locale.ROOT, "/%04x:%02x:00.0/%04x:%02x:00.0", root, 3 + number, root, 0x40 + number);
  }
}
