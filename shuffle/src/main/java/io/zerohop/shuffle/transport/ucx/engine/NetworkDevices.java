package io.zerohop.shuffle.transport.ucx.engine;

import io.zerohop.shuffle.transport.ucx.adapter.AdapterChoice;
import java.io.IOException;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The network devices that UCX may use: the interface of the executor's own address, so that its
 * worker listens there and nowhere else, and RDMA adapters, whose fabric is another network. Left
 * to itself UCX listens on every interface of the host. Immutable.
 *
 * @param ownInterface that of the executor's address
 * @param adapters the RDMA ports
 */
public record NetworkDevices(String ownInterface, AdapterChoice adapters) {
  /** Where users say it themselves; theirs is what counts. */
  private static final String VARIABLE = "UCX_NET_DEVICES";

  /**
   * Ports that one get is spread over at most: UCX's FAQ says that 4 are supported, and its own
   * configuration has as many where it has more than its default.
   */
  private static final int MAX_RAILS = 4;

  private static final String RAILS = "MAX_RMA_RAILS";

  /** Its older name, which is still taken. */
  private static final String LANES = "MAX_RMA_LANES";

  /** Returns whether the user has chosen them. */
  public static boolean areChosen() {
    return System.getenv(VARIABLE) != null;
  }

  /**
   * The devices of an executor.
   *
   * @param host the executor's own address, or a name of it
   * @param gpu PCI address of its GPU, if it has one
   * @return empty if the user has chosen them, or no interface of this host has that address
   */
  public static Optional<NetworkDevices> of(final String host, final @Nullable String gpu) {
    return areChosen() ? Optional.empty() : ofAddress(host, gpu);
  }

  private static Optional<NetworkDevices> ofAddress(final String host, final @Nullable String gpu) {
    try {
      final NetworkInterface own = NetworkInterface.getByInetAddress(InetAddress.getByName(host));
      return own == null
          ? Optional.empty()
          : Optional.of(new NetworkDevices(own.getName(), AdapterChoice.of(gpu)));
    } catch (final UnknownHostException | SocketException e) {
      return Optional.empty();
    }
  }

  /**
   * Settings of UCX for a context of its own: its devices, and over how many of them it spreads one
   * get unless the user has said that.
   *
   * @param environment of this process
   */
  public Map<String, String> settings(final Map<String, String> environment) {
    final Map<String, String> settings = new HashMap<>();
    settings.put("NET_DEVICES", names());
    final int rails = adapters.rails() ? Math.min(adapters.ports().size(), MAX_RAILS) : 1;
    if (rails > 1
        && Stream.of(RAILS, LANES).noneMatch(it -> environment.containsKey("UCX_" + it))) {
      settings.put(RAILS, Integer.toString(rails));
    }
    return settings;
  }

  /** As {@code UCX_NET_DEVICES} takes them. */
  private String names() {
    return Stream.concat(Stream.of(ownInterface), adapters.ports().stream())
        .collect(Collectors.joining(","));
  }

  /** The adapters of this node that can read and write memory on their own. */
  public static final class RdmaDevices {
    /** Where Linux lists them, RoCE and InfiniBand alike. */
    public static final Path FOLDER = Path.of("/sys/class/infiniband");

    private static final Path PEERMEM = Path.of("/sys/module/nvidia_peermem");

    private RdmaDevices() {}

    /**
     * Returns whether the kernel lets adapters reach GPU memory by NVIDIA's module, as without
     * dma-buf.
     */
    public static boolean peermem() {
      return Files.exists(PEERMEM);
    }

    /** Returns whether there is one. Without, UCX has the owner's CPU do what gets should. */
    public static boolean any() {
      try (Stream<Path> found = Files.list(FOLDER)) {
        return found.findAny().isPresent();
      } catch (final IOException e) {
        return false;
      }
    }
  }
}
