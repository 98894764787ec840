package io.zerohop.shuffle.transport.ucx.adapter;

import io.zerohop.device.posix.KernelFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * The place of a device on the PCI bus, from the path of its folder in sysfs, which names every
 * bridge on the way:
 *
 * <pre>
 *   /sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0
 *                root       root port    switch, up   switch, down device
 * </pre>
 *
 * Immutable.
 *
 * @param address domain, bus, device and function
 * @param bridges from the root to the device, the root first
 * @param node its NUMA node; negative if the kernel knows none
 */
record PciDevice(String address, List<String> bridges, int node) {
  private static final Pattern ROOT = Pattern.compile("pci[0-9a-f]{4,8}:[0-9a-f]{2}");
  private static final Pattern ADDRESS =
      Pattern.compile("[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]");

  /** Copies the list. */
  PciDevice {
    bridges = List.copyOf(bridges);
  }

  /**
   * The PCI device that a link of sysfs leads to, or that has what it leads to, such as a virtio
   * interface or a function of a network card.
   *
   * @return empty if there is no such link, or no PCI device is on its way
   */
  static Optional<PciDevice> of(final Path link) {
    final Path real;
    try {
      real = link.toRealPath();
    } catch (final IOException e) {
      return Optional.empty();
    }
    List<String> way = null;
    Path folder = real.getRoot();
    Path device = null;
    for (final Path part : real) {
      final String name = part.toString();
      folder = folder.resolve(part);
      if (ROOT.matcher(name).matches()) {
        way = new ArrayList<>(List.of(name));
      } else if (way != null && ADDRESS.matcher(name).matches()) {
        way.add(name);
        device = folder;
      }
    }
    if (way == null || device == null) {
      return Optional.empty();
    }
    final int last = way.size() - 1;
    return Optional.of(new PciDevice(way.get(last), way.subList(0, last), nodeOf(device)));
  }

  private static int nodeOf(final Path device) {
    try {
      return Integer.parseInt(KernelFiles.text(device.resolve("numa_node")));
    } catch (final NumberFormatException e) {
      return -1;
    }
  }

  /** Returns the distance to another device. */
  PciDistance to(final PciDevice other) {
    final int common = commonBridges(other);
    if (common == 0) {
      return node >= 0 && node == other.node ? PciDistance.NODE : PciDistance.SYS;
    }
    if (common == 1) {
      return PciDistance.PHB; // Of all bridges only the root.
    }
    // Each has a port of its own at the switch that they share.
    final int further = Math.max(bridges.size(), other.bridges.size()) - common;
    return further <= 1 ? PciDistance.PIX : PciDistance.PXB;
  }

  private int commonBridges(final PciDevice other) {
    final int most = Math.min(bridges.size(), other.bridges.size());
    int common = 0;
    while (common < most && bridges.get(common).equals(other.bridges.get(common))) {
      common++;
    }
    return common;
  }

  /** The physical function that a virtual one belongs to; empty if it is none. */
  static String physicalFunction(final Path device) {
    try {
      return Files.readSymbolicLink(device.resolve("physfn")).getFileName().toString();
    } catch (final IOException e) {
      return "";
    }
  }

  /**
   * The distance of two PCI devices, in the words and by the definitions of {@code nvidia-smi
   * topo}. The nearest comes first.
   */
  enum PciDistance {
    /** At most one PCIe switch is between them. */
    PIX,
    /** Several PCIe switches, and not the host bridge. */
    PXB,
    /** The host bridge, as a rule of the CPU. */
    PHB,
    /** Two host bridges of one NUMA node. */
    NODE,
    /** Two NUMA nodes, or nothing is known of them. */
    SYS;

    /** Returns whether bytes between them stay below the host bridge. */
    boolean belowHostBridge() {
      return this == PIX || this == PXB;
    }
  }

  /**
   * The kernel's files about its devices, which {@link KernelFiles} reads. Immutable.
   *
   * @param root where {@code sys}, {@code proc} and {@code dev} are mounted
   */
  record HostFiles(Path root) {
    /** Those of this machine. */
    static final HostFiles SYSTEM = new HostFiles(Path.of("/"));

    /** RDMA devices, InfiniBand and RoCE alike. */
    Path infiniband() {
      return root.resolve("sys/class/infiniband");
    }

    /** Returns the folder of the devices by which processes use RDMA. */
    Path verbs() {
      return root.resolve("sys/class/infiniband_verbs");
    }

    /** The files of these. */
    Path verbsFiles() {
      return root.resolve("dev/infiniband");
    }

    /** A network interface. */
    Path netInterface(final String name) {
      return root.resolve("sys/class/net").resolve(name);
    }

    /** All PCI devices, by their addresses. */
    Path pciDevices() {
      return root.resolve("sys/bus/pci/devices");
    }

    /** A PCI device by its address, whose domain may have four digits or eight, in either case. */
    Path pciDevice(final String address) {
      final String lower = address.toLowerCase(Locale.ROOT);
      final boolean wide = lower.indexOf(':') == 8 && lower.startsWith("0000");
      return pciDevices().resolve(wide ? lower.substring(4) : lower);
    }

    /** IPv4 routes. */
    Path routes() {
      return root.resolve("proc/net/route");
    }
  }
}
