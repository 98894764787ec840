package io.zerohop.shuffle.transport.ucx.adapter;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * One port of an RDMA adapter, as the kernel's {@code Documentation/ABI/stable/sysfs-class-
 * infiniband} has it. Immutable.
 *
 * @param name as UCX names it: {@code mlx5_0:1}
 * @param folder of the port in sysfs
 * @param active whether it has a link
 * @param open whether this process may use it: in a container it may see more than it was given
 * @param linkLayer {@code InfiniBand} or {@code Ethernet}; empty if it is not known
 * @param gigabits its rate in Gb/s; 0 if it is not known
 * @param pci where the adapter is; empty for a software adapter without hardware below it
 * @param physicalFunction what a virtual function belongs to, as far as this machine sees that;
 *     empty otherwise
 */
record RdmaPort(
    String name,
    Path folder,
    boolean active,
    boolean open,
    String linkLayer,
    double gigabits,
    Optional<PciDevice> pci,
    String physicalFunction) {
  static final String INFINIBAND = "InfiniBand";
  static final String ETHERNET = "Ethernet";

  private static final Pattern RATE = Pattern.compile("([0-9]+(?:\\.[0-9]+)?) Gb/sec.*");

  /** By place on the bus, then by name: the same order in every process of the node. */
  private static final Comparator<RdmaPort> ORDER =
      Comparator.comparing((RdmaPort port) -> port.pci().map(PciDevice::address).orElse("~"))
          .thenComparing(RdmaPort::name);

  /** All ports of all adapters. */
  static List<RdmaPort> all(final HostFiles host) {
    final List<RdmaPort> ports = new ArrayList<>();
    for (final String device : HostFiles.names(host.infiniband())) {
      final Path folder = host.infiniband().resolve(device);
      final Path hardware = hardware(host, folder);
      final Optional<PciDevice> pci = PciDevice.of(hardware);
      final String physical = PciDevice.physicalFunction(hardware);
      final boolean open = open(host, device);
      for (final String port : HostFiles.names(folder.resolve("ports"))) {
        final Path at = folder.resolve("ports").resolve(port);
        ports.add(of(device + ":" + port, at, open, pci, physical));
      }
    }
    ports.sort(ORDER);
    return ports;
  }

  /** A software adapter (soft-RoCE, soft-iWARP) has the hardware of the interface below it. */
  private static Path hardware(final HostFiles host, final Path device) {
    final String below = HostFiles.text(device.resolve("parent"));
    return (below.isEmpty() ? device : host.netInterface(below)).resolve("device");
  }

  /** By the character device that libibverbs opens; true where the kernel does not name it. */
  private static boolean open(final HostFiles host, final String device) {
    for (final String verbs : HostFiles.names(host.verbs())) {
      if (HostFiles.text(host.verbs().resolve(verbs).resolve("ibdev")).equals(device)) {
        final Path file = host.verbsFiles().resolve(verbs);
        return Files.isReadable(file) && Files.isWritable(file);
      }
    }
    return true;
  }

  private static RdmaPort of(
      final String name,
      final Path folder,
      final boolean open,
      final Optional<PciDevice> pci,
      final String physicalFunction) {
    final String state = HostFiles.text(folder.resolve("state"));
    return new RdmaPort(
        name,
        folder,
        state.isEmpty() || state.endsWith(": ACTIVE"),
        open,
        HostFiles.text(folder.resolve("link_layer")),
        rate(HostFiles.text(folder.resolve("rate"))),
        pci,
        physicalFunction);
  }

  private static double rate(final String text) {
    final Matcher matcher = RATE.matcher(text);
    return matcher.matches() ? Double.parseDouble(matcher.group(1)) : 0;
  }

  /** Returns the distance from a GPU; empty if it is not known. */
  Optional<PciDistance> to(final PciDevice gpu) {
    return pci.map(gpu::to);
  }
}
