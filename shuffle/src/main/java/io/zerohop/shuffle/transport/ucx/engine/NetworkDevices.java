package io.zerohop.shuffle.transport.ucx.engine;

import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * The network devices that UCX may use: the interface of the executor's own address, so that its
 * worker listens there and nowhere else, and RDMA adapters, whose fabric is another network. Left
 * to itself UCX listens on every interface of the host.
 */
public final class NetworkDevices {
  /** Where users say it themselves; theirs is what counts. */
  private static final String VARIABLE = "UCX_NET_DEVICES";

  private NetworkDevices() {}

  /** Whether the user has chosen them. */
  public static boolean areChosen() {
    return System.getenv(VARIABLE) != null;
  }

  /**
   * Devices as {@code UCX_NET_DEVICES} takes them.
   *
   * @param host the executor's own address, or a name of it
   * @return empty if the user has chosen them, or no interface of this host has that address
   */
  public static Optional<String> of(final String host) {
    return areChosen() ? Optional.empty() : ofAddress(host);
  }

  private static Optional<String> ofAddress(final String host) {
    try {
      final NetworkInterface own = NetworkInterface.getByInetAddress(InetAddress.getByName(host));
      if (own == null) {
        return Optional.empty();
      }
      final List<String> devices = new ArrayList<>(List.of(own.getName()));
      devices.addAll(RdmaDevices.ports());
      return Optional.of(String.join(",", devices));
    } catch (final UnknownHostException | SocketException e) {
      return Optional.empty();
    }
  }
}
