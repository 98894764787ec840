package io.zerohop.shuffle.transport.ucx.adapter;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/**
 * The kernel's files about its devices. One that cannot be read says nothing: containers and
 * virtual machines have a part of them only. Immutable.
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

  /** Returns the names in a folder, sorted; empty if it is missing. */
  static List<String> names(final Path folder) {
    try (Stream<Path> found = Files.list(folder)) {
      return found.map(path -> path.getFileName().toString()).sorted().toList();
    } catch (final IOException e) {
      return List.of();
    }
  }

  /** Returns the text of a file, without white space at its ends; empty if it cannot be read. */
  static String text(final Path file) {
    return String.join("\n", lines(file)).trim();
  }

  /** The lines of a file; none if it cannot be read. */
  static List<String> lines(final Path file) {
    try {
      return Files.readAllLines(file);
    } catch (final IOException e) {
      return List.of();
    }
  }
}
