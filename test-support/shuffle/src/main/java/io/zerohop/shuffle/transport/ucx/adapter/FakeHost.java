package io.zerohop.shuffle.transport.ucx.adapter;

import io.zerohop.shuffle.transport.ucx.adapter.PciDevice.HostFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A machine that is made up, as files in a folder: what Linux shows of GPUs and RDMA adapters in
 * sysfs, with its symbolic links.
 */
final class FakeHost {
  private final Path root;

  FakeHost(final Path root) {
    this.root = root;
  }

  HostFiles files() {
    return new HostFiles(root);
  }

  /**
   * Adds a GPU.
   *
   * @param way the bridges to it, from the root
   */
  void gpu(final String address, final String way, final int node) {
    pci(address, way, node, "0x10de", "0x030200");
  }

  /** Adds an adapter; its ports are added to what is returned. */
  Adapter adapter(final String name, final String address, final String way, final int node) {
    final Path device = pci(address, way, node, "0x15b3", "0x020700");
    final Path folder = device.resolve("infiniband").resolve(name);
    write(folder.resolve("node_type"), "1: CA");
    link(folder.resolve("device"), device);
    link(root.resolve("sys/class/infiniband").resolve(name), folder);
    return new Adapter(folder);
  }

  /** Adds a software adapter on a network interface, which is a function of a PCI device. */
  Adapter software(final String name, final String netInterface, final Path device) {
    final Path folder = root.resolve("sys/devices/virtual/infiniband").resolve(name);
    write(folder.resolve("parent"), netInterface);
    link(root.resolve("sys/class/infiniband").resolve(name), folder);
    link(root.resolve("sys/class/net").resolve(netInterface).resolve("device"), device);
    return new Adapter(folder);
  }

  /** Adds a PCI device. */
  Path pci(
      final String address,
      final String way,
      final int node,
      final String vendor,
      final String kind) {
    final Path device = root.resolve("sys/devices").resolve(way).resolve(address);
    write(device.resolve("vendor"), vendor);
    write(device.resolve("class"), kind);
    write(device.resolve("numa_node"), Integer.toString(node));
    link(root.resolve("sys/bus/pci/devices").resolve(address), device);
    return device;
  }

  /** Names the file by which an adapter is used. */
  Path verbs(final String file, final String adapter) {
    write(root.resolve("sys/class/infiniband_verbs").resolve(file).resolve("ibdev"), adapter);
    return root.resolve("dev/infiniband").resolve(file);
  }

  /** Writes the routes; each is an interface, a destination and a mask as the kernel has them. */
  void routes(final String... rows) {
    final StringBuilder text =
        new StringBuilder("Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\t");
    text.append("Metric\tMask\t\tMTU\tWindow\tIRTT\n");
    for (final String row : rows) {
      final String[] of = row.split(" ");
      text.append(of[0]).append('\t').append(of[1]).append("\t00000000\t0001\t0\t0\t0\t");
      text.append(of[2]).append("\t0\t0\t0\n");
    }
    write(root.resolve("proc/net/route"), text.toString());
  }

  static void write(final Path file, final String text) {
    try {
      Files.createDirectories(file.getParent());
      Files.writeString(file, text + "\n");
    } catch (final IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Relative, as those of sysfs are. */
  static void link(final Path link, final Path target) {
    try {
      Files.createDirectories(link.getParent());
      Files.createSymbolicLink(link, link.getParent().relativize(target));
    } catch (final IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** An adapter's folder. */
  record Adapter(Path folder) {

    /** Adds a port of InfiniBand at the fastest rate, in the subnet that all are in by default. */
    Adapter infiniband() {
      return port(1, "4: ACTIVE", "InfiniBand", "400 Gb/sec (4X NDR)")
          .gid(1, 0, "fe80:0000:0000:0000:a088:c203:00f5:0001", "");
    }

    /** Adds a port of RoCE with an IPv4 address, the last two groups of its GID. */
    Adapter roce(final String netInterface, final String address) {
      return port(1, "4: ACTIVE", "Ethernet", "400 Gb/sec (4X NDR)")
          .gid(1, 0, "fe80:0000:0000:0000:0a00:27ff:fe00:0001", netInterface)
          .gid(1, 3, "0000:0000:0000:0000:0000:ffff:" + address, netInterface);
    }

    Adapter port(final int port, final String state, final String layer, final String rate) {
      final Path at = folder.resolve("ports/" + port);
      write(at.resolve("state"), state);
      write(at.resolve("link_layer"), layer);
      write(at.resolve("rate"), rate);
      return this;
    }

    Adapter gid(final int port, final int index, final String gid, final String netInterface) {
      final Path at = folder.resolve("ports/" + port);
      write(at.resolve("gids/" + index), gid);
      write(at.resolve("gid_attrs/ndevs/" + index), netInterface);
      return this;
    }

    /** Where the adapter is on the bus. */
    Path device() {
      return folder.getParent().getParent();
    }
  }
}
