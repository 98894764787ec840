package io.zerohop.shuffle.transport.ucx.adapter;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * What each GPU of a machine gets of its RDMA ports: those nearest to it, shared out among all GPUs
 * to which the same ports are nearest, so that together they use all of them. Every process of the
 * machine finds the same shares, since all GPUs count, not those that it may use. Immutable.
 */
final class Shares {
  private static final String NVIDIA = "0x10de";

  /** Display controllers, to which GPUs without a display belong (PCI Code and ID Assignment). */
  private static final String DISPLAY_CLASS = "0x03";

  private final Map<String, PciDevice> gpus;
  private final List<RdmaPort> ports;

  /**
   * @param own a GPU that counts even if it is not in the machine's list
   * @param ports whose places are known
   */
  Shares(final HostFiles host, final PciDevice own, final List<RdmaPort> ports) {
    this.ports = List.copyOf(ports);
    this.gpus = gpusOf(host);
    gpus.put(own.address(), own);
  }

  private static Map<String, PciDevice> gpusOf(final HostFiles host) {
    final Map<String, PciDevice> gpus = new TreeMap<>();
    for (final String address : HostFiles.names(host.pciDevices())) {
      final Path device = host.pciDevices().resolve(address);
      if (HostFiles.text(device.resolve("vendor")).equals(NVIDIA)
          && HostFiles.text(device.resolve("class")).startsWith(DISPLAY_CLASS)) {
        PciDevice.of(device).ifPresent(gpu -> gpus.put(gpu.address(), gpu));
      }
    }
    return gpus;
  }

  /** The distance of a GPU to the nearest of the ports. */
  PciDistance distance(final PciDevice gpu) {
    return ports.stream()
        .flatMap(port -> port.to(gpu).stream())
        .min(Comparator.naturalOrder())
        .orElse(PciDistance.SYS);
  }

  /**
   * The distance of all GPUs to all ports, if it is the same and says no more than that they are in
   * one machine; empty otherwise.
   */
  Optional<PciDistance> onlyDistance() {
    final List<PciDistance> distances =
        gpus.values().stream()
            .flatMap(gpu -> ports.stream().flatMap(port -> port.to(gpu).stream()))
            .distinct()
            .toList();
    return distances.size() == 1 && !distances.get(0).belowHostBridge()
        ? Optional.of(distances.get(0))
        : Optional.empty();
  }

  /** What the GPUs get together. */
  List<RdmaPort> all() {
    return gpus.values().stream().flatMap(gpu -> of(gpu).stream()).distinct().toList();
  }

  /**
   * What one GPU gets, in the order of places on the bus, GPUs and ports alike: several ports where
   * there are more of them than GPUs, and one that others get too where there are fewer.
   */
  List<RdmaPort> of(final PciDevice gpu) {
    final List<RdmaPort> nearest = nearest(gpu);
    final List<PciDevice> sharers =
        gpus.values().stream().filter(other -> nearest(other).equals(nearest)).toList();
    final int turn = sharers.indexOf(gpu);
    final List<RdmaPort> share = new ArrayList<>();
    for (int i = 0; i < nearest.size(); i++) {
      final boolean taken =
          nearest.size() >= sharers.size()
              ? i * sharers.size() / nearest.size() == turn
              : turn * nearest.size() / sharers.size() == i;
      if (taken) {
        share.add(nearest.get(i));
      }
    }
    return share;
  }

  /** How many GPUs get one of these. */
  long takers(final List<RdmaPort> share) {
    return gpus.values().stream().filter(gpu -> of(gpu).stream().anyMatch(share::contains)).count();
  }

  private List<RdmaPort> nearest(final PciDevice gpu) {
    final Optional<PciDistance> least = Optional.of(distance(gpu));
    return ports.stream().filter(port -> port.to(gpu).equals(least)).toList();
  }
}
