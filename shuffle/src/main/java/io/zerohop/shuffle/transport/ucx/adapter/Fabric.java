package io.zerohop.shuffle.transport.ucx.adapter;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Whether ports are of one network, so that each of them reaches every one of the same kind on
 * other nodes. Where they are not, as where each adapter of a node has a network of its own
 * (rails), a reader has to have the port that fits its owner's, whichever is near.
 *
 * <p>InfiniBand: the ports have one subnet prefix. RoCE: by the best IPv4 route from the interface
 * of each to the address of each other, since other nodes have addresses like those of this one.
 * That is what UCX goes by from 1.19 on ({@code UCX_IB_ROCE_REACHABILITY_MODE=route}).
 */
final class Fabric {
  /** A GID that is an IPv4 address (RFC 4291, 2.5.5.2). */
  private static final String IPV4 = "0000:0000:0000:0000:0000:ffff:";

  private static final int GROUPS_OF_PREFIX = 4;

  /** A row of {@code /proc/net/route}; numbers in network byte order. */
  private record Route(String netInterface, long destination, long mask) {
    boolean covers(final long address) {
      return (address & mask) == destination;
    }
  }

  /** What RoCE goes by at one port: interfaces, those of its VLANs included, and addresses. */
  private record Interface(Set<String> names, Set<Long> addresses) {
    static Interface of(final RdmaPort port) {
      final Interface found = new Interface(new HashSet<>(), new HashSet<>());
      final Path gids = port.folder().resolve("gids");
      for (final String index : HostFiles.names(gids)) {
        final String gid = HostFiles.text(gids.resolve(index));
        if (gid.startsWith(IPV4)) {
          found.addresses.add(Long.parseLong(gid.substring(IPV4.length()).replace(":", ""), 16));
          found.names.add(HostFiles.text(port.folder().resolve("gid_attrs/ndevs").resolve(index)));
        }
      }
      return found;
    }
  }

  private final List<Route> routes = new ArrayList<>();

  Fabric(final HostFiles host) {
    for (final String line : HostFiles.lines(host.routes())) {
      final String[] columns = line.trim().split("\\s+");
      if (columns.length > 7 && columns[1].length() == 8 && columns[7].length() == 8) {
        routes.add(new Route(columns[0], littleEndian(columns[1]), littleEndian(columns[7])));
      }
    }
  }

  /** Whether they are all of one network, as far as can be known here. */
  boolean isOne(final List<RdmaPort> ports) {
    if (ports.size() < 2) {
      return true;
    }
    if (ports.stream().allMatch(port -> port.linkLayer().equals(RdmaPort.INFINIBAND))) {
      return ports.stream().map(Fabric::subnetPrefix).distinct().count() == 1;
    }
    final List<Interface> interfaces = ports.stream().map(Interface::of).toList();
    for (final Interface one : interfaces) {
      for (final Interface other : interfaces) {
        if (one != other && !reaches(one, other)) {
          return false;
        }
      }
    }
    return true;
  }

  private static String subnetPrefix(final RdmaPort port) {
    final String[] groups = HostFiles.text(port.folder().resolve("gids/0")).split(":");
    return String.join(":", List.of(groups).subList(0, Math.min(GROUPS_OF_PREFIX, groups.length)));
  }

  private boolean reaches(final Interface one, final Interface other) {
    return !other.addresses().isEmpty()
        && other.addresses().stream().allMatch(address -> hasBestRoute(one.names(), address));
  }

  /** Whether no other interface has a route that is closer to an address. */
  private boolean hasBestRoute(final Set<String> interfaces, final long address) {
    long closest = -1;
    long ours = -1;
    for (final Route route : routes) {
      if (route.covers(address)) {
        closest = Math.max(closest, route.mask());
        ours = interfaces.contains(route.netInterface()) ? Math.max(ours, route.mask()) : ours;
      }
    }
    return ours >= 0 && ours == closest;
  }

  private static long littleEndian(final String hex) {
    return Integer.toUnsignedLong(Integer.reverseBytes(Integer.parseUnsignedInt(hex, 16)));
  }
}
