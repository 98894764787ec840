package io.zerohop.shuffle.transport.ucx.adapter;

import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * The RDMA ports that an executor uses: its GPU's share of those nearest to it. Where nothing tells
 * the ports apart, or a port may not reach all those of other nodes, it is all of them. Immutable.
 *
 * @param ports as UCX names them; empty if there is none
 * @param rails whether one transfer may be spread over several of them: they are as near as one
 *     another and of one network
 * @param reason why these and not others, for the log
 */
public record AdapterChoice(List<String> ports, boolean rails, String reason) {

  /** Copies the list. */
  public AdapterChoice {
    ports = List.copyOf(ports);
  }

  /**
   * The ports for an executor of this machine. Reads some hundred small files, and with RoCE some
   * thousand.
   *
   * @param gpu PCI address of its GPU; null if it has none
   */
  public static AdapterChoice of(final String gpu) {
    return of(HostFiles.SYSTEM, gpu);
  }

  /** The ports and why these, for the log. */
  public String describe() {
    return (ports.isEmpty() ? "no RDMA port" : String.join(", ", ports)) + ": " + reason;
  }

  static AdapterChoice of(final HostFiles host, final String gpu) {
    final UsablePorts usable = UsablePorts.of(RdmaPort.all(host));
    final AdapterChoice choice = choose(host, usable.ports(), gpu);
    return usable.leftOut().isEmpty()
        ? choice
        : new AdapterChoice(
            choice.ports,
            choice.rails,
            choice.reason + "; left out: " + String.join(", ", usable.leftOut()));
  }

  private static AdapterChoice choose(
      final HostFiles host, final List<RdmaPort> ports, final String gpu) {
    if (ports.isEmpty()) {
      return new AdapterChoice(List.of(), false, "there is none that can be used");
    }
    if (gpu == null) {
      return all(ports, false, "this executor has no GPU");
    }
    final Optional<PciDevice> own = PciDevice.of(host.pciDevice(gpu));
    if (own.isEmpty()) {
      return all(ports, false, "the PCIe path of GPU " + gpu + " is not known");
    }
    final List<RdmaPort> placed = ports.stream().filter(port -> port.pci().isPresent()).toList();
    if (placed.isEmpty()) {
      return all(ports, false, "no PCIe path to them is known");
    }
    final Shares shares = new Shares(host, own.get(), placed);
    final Fabric fabric = new Fabric(host);
    final Optional<PciDistance> only = shares.onlyDistance();
    if (only.isPresent() && ports.size() > 1) {
      return all(
          ports,
          fabric.isOne(ports),
          "PCIe does not tell them apart (" + only.get() + " to every GPU)");
    }
    if (!fabric.isOne(shares.all())) {
      return all(ports, false, "they are not known to be of one network");
    }
    return nearest(own.get(), shares, placed);
  }

  private static AdapterChoice all(
      final List<RdmaPort> ports, final boolean rails, final String why) {
    return new AdapterChoice(
        ports.stream().map(RdmaPort::name).toList(), rails, "all that can be used, since " + why);
  }

  private static AdapterChoice nearest(
      final PciDevice own, final Shares shares, final List<RdmaPort> ports) {
    final List<RdmaPort> share = shares.of(own);
    final String others =
        ports.stream()
            .filter(port -> !share.contains(port))
            .flatMap(port -> port.to(own).stream())
            .distinct()
            .sorted()
            .map(PciDistance::name)
            .collect(Collectors.joining(", "));
    final long takers = shares.takers(share);
    return new AdapterChoice(
        share.stream().map(RdmaPort::name).toList(),
        true,
        "nearest to GPU "
            + own.address()
            + " ("
            + shares.distance(own)
            + (others.isEmpty() ? "" : ", others " + others)
            + ")"
            + (takers > 1 ? ", used by " + takers + " GPUs" : ""));
  }
}
