package io.zerohop.shuffle.transport.ucx.engine;

import io.zerohop.shuffle.transport.ucx.adapter.AdapterChoice;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;

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
   * Ports that one get or message is spread over at most: UCX's FAQ says that 4 are supported, and
   * its own configuration has as many where it has more than its default.
   */
  private static final int MOST_RAILS = 4;

  /** What UCX spreads a message over if it is told nothing (ucp_context.c, 1.13 to 1.22). */
  private static final int RAILS_OF_MESSAGES = 2;

  /** Whether the user has chosen them. */
  public static boolean areChosen() {
    return System.getenv(VARIABLE) != null;
  }

  /**
   * The devices of an executor.
   *
   * @param host the executor's own address, or a name of it
   * @param gpu PCI address of its GPU; null if it has none
   * @return empty if the user has chosen them, or no interface of this host has that address
   */
  public static Optional<NetworkDevices> of(final String host, final String gpu) {
    return areChosen() ? Optional.empty() : ofAddress(host, gpu);
  }

  private static Optional<NetworkDevices> ofAddress(final String host, final String gpu) {
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
   * get or message. Of the latter nothing that the user has set.
   *
   * @param environment of this process
   */
  public Map<String, String> settings(final Map<String, String> environment) {
    final Map<String, String> settings = new HashMap<>();
    settings.put("NET_DEVICES", names());
    final int rails = adapters.rails() ? Math.min(adapters.ports().size(), MOST_RAILS) : 1;
    if (rails > 1) {
      putRails(settings, "MAX_RMA", rails, environment);
    }
    if (rails > RAILS_OF_MESSAGES) {
      putRails(settings, "MAX_RNDV", rails, environment);
    }
    return settings;
  }

  /** The older name of either setting is still taken. */
  private static void putRails(
      final Map<String, String> settings,
      final String prefix,
      final int rails,
      final Map<String, String> environment) {
    if (Stream.of("_RAILS", "_LANES")
        .noneMatch(it -> environment.containsKey("UCX_" + prefix + it))) {
      settings.put(prefix + "_RAILS", Integer.toString(rails));
    }
  }

  /** As {@code UCX_NET_DEVICES} takes them. */
  private String names() {
    return Stream.concat(Stream.of(ownInterface), adapters.ports().stream())
        .collect(Collectors.joining(","));
  }
}
