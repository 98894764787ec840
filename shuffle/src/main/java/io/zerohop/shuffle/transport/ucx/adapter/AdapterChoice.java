package io.zerohop.shuffle.transport.ucx.adapter;

import io.zerohop.device.posix.KernelFiles;
import io.zerohop.shuffle.transport.ucx.adapter.PciDevice.HostFiles;
import io.zerohop.shuffle.transport.ucx.adapter.PciDevice.PciDistance;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The RDMA ports that an executor uses: its GPU's share of those nearest to it. Where nothing tells
 * the ports apart, or a port may not reach all those of other nodes, it is all of them. It is made
 * by sysfs and by nothing of UCX. Immutable.
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
   * @param gpu PCI address of its GPU, if it has one
   */
  public static AdapterChoice of(final @Nullable String gpu) {
    return of(HostFiles.SYSTEM, gpu);
  }

  /** The ports and why these, for the log. */
  public String describe() {
    return (ports.isEmpty() ? "no RDMA port" : String.join(", ", ports)) + ": " + reason;
  }

  static AdapterChoice of(final HostFiles host, final @Nullable String gpu) {
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
      final HostFiles host, final List<RdmaPort> ports, final @Nullable String gpu) {
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

  /**
   * Decides whether ports are of one network, so that each of them reaches every one of the same
   * kind on other nodes. Where they are not, as where each adapter of a node has a network of its
   * own (rails), a reader has to have the port that fits its owner's, whichever is near.
   *
   * <p>InfiniBand: the ports have one subnet prefix. RoCE: by the best IPv4 route from the
   * interface of each to the address of each other, since other nodes have addresses like those of
   * this one. That is what UCX goes by from 1.19 on ({@code UCX_IB_ROCE_REACHABILITY_MODE=route}).
   */
  private static final class Fabric {
    /** A GID that is an IPv4 address (RFC 4291, 2.5.5.2). */
    private static final String IPV4 = "0000:0000:0000:0000:0000:ffff:";

    private static final int GROUPS_OF_PREFIX = 4;

    /** A row of {@code /proc/net/route}; numbers in network byte order. */
    private record Route(String netInterface, long destination, long mask) {
      boolean covers(final long address) {
        return (address & mask) == destination;
      }
    }

    /** RoCE's addresses at one port, and its interfaces with those of its VLANs. */
    private record Interface(Set<String> names, Set<Long> addresses) {
      static Interface of(final RdmaPort port) {
        final Interface found = new Interface(new HashSet<>(), new HashSet<>());
        final Path gids = port.folder().resolve("gids");
        for (final String index : KernelFiles.names(gids)) {
          final String gid = KernelFiles.text(gids.resolve(index));
          if (gid.startsWith(IPV4)) {
            found.addresses.add(Long.parseLong(gid.substring(IPV4.length()).replace(":", ""), 16));
            found.names.add(
                KernelFiles.text(port.folder().resolve("gid_attrs/ndevs").resolve(index)));
          }
        }
        return found;
      }
    }

    private final List<Route> routes = new ArrayList<>();

    Fabric(final HostFiles host) {
      for (final String line : KernelFiles.lines(host.routes())) {
        final String[] columns = line.trim().split("\\s+");
        if (columns.length > 7 && columns[1].length() == 8 && columns[7].length() == 8) {
          routes.add(new Route(columns[0], littleEndian(columns[1]), littleEndian(columns[7])));
        }
      }
    }

    /** Returns whether they are all of one network, as far as can be known here. */
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
      final String[] groups = KernelFiles.text(port.folder().resolve("gids/0")).split(":");
      return String.join(
          ":", List.of(groups).subList(0, Math.min(GROUPS_OF_PREFIX, groups.length)));
    }

    private boolean reaches(final Interface one, final Interface other) {
      return !other.addresses().isEmpty()
          && other.addresses().stream().allMatch(address -> hasBestRoute(one.names(), address));
    }

    /** Returns whether no other interface has a route that is closer to an address. */
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

  /**
   * Assigns RDMA ports to a machine's GPUs. Each GPU gets its nearest ports, divided among all GPUs
   * with the same nearest ones, so that together they use all ports. Every process of the machine
   * finds the same shares, since all GPUs count, not those that it may use. Immutable.
   */
  private static final class Shares {
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
      for (final String address : KernelFiles.nvidiaGpus(host.pciDevices())) {
        PciDevice.of(host.pciDevices().resolve(address))
            .ifPresent(gpu -> gpus.put(gpu.address(), gpu));
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
     * The distance of all GPUs to all ports, if it is the same and says no more than that they are
     * in one machine; empty otherwise.
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

    /** Returns the ports of all GPUs together. */
    List<RdmaPort> all() {
      return gpus.values().stream().flatMap(gpu -> of(gpu).stream()).distinct().toList();
    }

    /**
     * The adapters of one GPU, in the order of places on the bus, of GPUs and ports alike. With
     * more ports than GPUs it has several; with fewer it shares one.
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

    /** Returns the number of GPUs that have one of these. */
    long takers(final List<RdmaPort> share) {
      return gpus.values().stream()
          .filter(gpu -> of(gpu).stream().anyMatch(share::contains))
          .count();
    }

    private List<RdmaPort> nearest(final PciDevice gpu) {
      final Optional<PciDistance> least = Optional.of(distance(gpu));
      return ports.stream().filter(port -> port.to(gpu).equals(least)).toList();
    }
  }

  /**
   * The ports that blocks may go by: those of the fast network. What serves storage and management
   * is told from it by having no link, another link layer or a lower rate. What this process cannot
   * open is left out, too. Immutable.
   *
   * @param ports in the order of all ports
   * @param leftOut the others, each with the reason
   */
  private record UsablePorts(List<RdmaPort> ports, List<String> leftOut) {

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
  private record RdmaPort(
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
      for (final String device : KernelFiles.names(host.infiniband())) {
        final Path folder = host.infiniband().resolve(device);
        final Path hardware = hardware(host, folder);
        final Optional<PciDevice> pci = PciDevice.of(hardware);
        final String physical = PciDevice.physicalFunction(hardware);
        final boolean open = open(host, device);
        for (final String port : KernelFiles.names(folder.resolve("ports"))) {
          final Path at = folder.resolve("ports").resolve(port);
          ports.add(of(device + ":" + port, at, open, pci, physical));
        }
      }
      ports.sort(ORDER);
      return ports;
    }

    /** A software adapter (soft-RoCE, soft-iWARP) has the hardware of the interface below it. */
    private static Path hardware(final HostFiles host, final Path device) {
      final String below = KernelFiles.text(device.resolve("parent"));
      return (below.isEmpty() ? device : host.netInterface(below)).resolve("device");
    }

    /** By the character device that libibverbs opens; true where the kernel does not name it. */
    private static boolean open(final HostFiles host, final String device) {
      for (final String verbs : KernelFiles.names(host.verbs())) {
        if (KernelFiles.text(host.verbs().resolve(verbs).resolve("ibdev")).equals(device)) {
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
      final String state = KernelFiles.text(folder.resolve("state"));
      return new RdmaPort(
          name,
          folder,
          state.isEmpty() || state.endsWith(": ACTIVE"),
          open,
          KernelFiles.text(folder.resolve("link_layer")),
          rate(KernelFiles.text(folder.resolve("rate"))),
          pci,
          physicalFunction);
    }

    private static double rate(final String text) {
      final Matcher matcher = RATE.matcher(text);
      return matcher.matches() ? Double.parseDouble(matcher.group(1)) : 0;
    }

    /** How far it is from a GPU; empty if that is not known. */
    Optional<PciDistance> to(final PciDevice gpu) {
      return pci.map(gpu::to);
    }
  }
}
