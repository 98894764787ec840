package io.zerohop.shuffle.transport.ucx.adapter;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Predicate;
import java.util.stream.Collectors;

/**
 * The ports that blocks may go by: those of the fast network. What serves storage and management is
 * told from it by having no link, another link layer or a lower rate. What this process cannot open
 * is left out, too. Immutable.
 *
 * @param ports in the order of all ports
 * @param leftOut the others, each with the reason
 */
record UsablePorts(List<RdmaPort> ports, List<String> leftOut) {

  /** Copies the lists. */
  UsablePorts {
    ports = List.copyOf(ports);
    leftOut = List.copyOf(leftOut);
  }

  static UsablePorts of(final List<RdmaPort> all) {
    final List<RdmaPort> left = new ArrayList<>(all);
    final List<String> leftOut = new ArrayList<>();
    drop(left, leftOut, "not active", port -> !port.active());
    drop(left, leftOut, "not open to this process in /dev/infiniband", port -> !port.open());
    final List<String> present =
        left.stream().flatMap(port -> port.pci().stream()).map(PciDevice::address).toList();
    drop(
        left,
        leftOut,
        "virtual function of an adapter in this list",
        port -> present.contains(port.physicalFunction()));
    final String layer = fastestLayer(left);
    drop(
        left,
        leftOut,
        "not " + layer,
        port -> !port.linkLayer().isEmpty() && !port.linkLayer().equals(layer));
    final double best = left.stream().mapToDouble(RdmaPort::gigabits).max().orElse(0);
    drop(
        left,
        leftOut,
        String.format(Locale.ROOT, "slower than %.0f Gb/s", best),
        port -> port.gigabits() > 0 && port.gigabits() < best);
    return new UsablePorts(left, leftOut);
  }

  /** The link layer of the ports that move most together. */
  private static String fastestLayer(final List<RdmaPort> ports) {
    final Map<String, Double> gigabits = new HashMap<>();
    for (final RdmaPort port : ports) {
      gigabits.merge(port.linkLayer(), port.gigabits(), Double::sum);
    }
    final double ethernet = gigabits.getOrDefault(RdmaPort.ETHERNET, -1.0);
    final double infiniband = gigabits.getOrDefault(RdmaPort.INFINIBAND, -1.0);
    if (ethernet < 0 && infiniband < 0) {
      return gigabits.keySet().stream().max(String::compareTo).orElse("");
    }
    return ethernet > infiniband ? RdmaPort.ETHERNET : RdmaPort.INFINIBAND;
  }

  private static void drop(
      final List<RdmaPort> ports,
      final List<String> leftOut,
      final String reason,
      final Predicate<RdmaPort> which) {
    final String names =
        ports.stream().filter(which).map(RdmaPort::name).collect(Collectors.joining(", "));
    if (!names.isEmpty()) {
      leftOut.add(names + " (" + reason + ")");
      ports.removeIf(which);
    }
  }
}
