package io.zerohop.shuffle.transport.ucx.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.zerohop.shuffle.transport.ucx.adapter.AdapterChoice;
import java.net.NetworkInterface;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class NetworkDevicesTest {

  @BeforeEach
  void nothingIsChosen() {
    assumeTrue(System.getenv("UCX_NET_DEVICES") == null, "UCX_NET_DEVICES is set here");
  }

  @Test
  void theInterfaceOfTheOwnAddressComesFirst() throws Exception {
    final String loopback = NetworkInterface.getByIndex(1).getName();
    assertThat(NetworkDevices.of("127.0.0.1", null).orElseThrow().ownInterface())
        .isEqualTo(loopback);
  }

  @Test
  void anAddressOfAnotherHostNamesNone() {
    assertThat(NetworkDevices.of("203.0.113.1", null)).isEmpty();
  }

  @Test
  void aNameThatNobodyKnowsNamesNone() {
    assertThat(NetworkDevices.of("no-such-host.invalid", null)).isEmpty();
  }

  private static Map<String, String> settings(final int ports, final Map<String, String> user) {
    return devices(ports, true).settings(user);
  }

  private static NetworkDevices devices(final int ports, final boolean rails) {
    final List<String> names = IntStream.range(0, ports).mapToObj(i -> "mlx5_" + i + ":1").toList();
    return new NetworkDevices("eth0", new AdapterChoice(names, rails, "a test"));
  }

  @Test
  void oneAdapterChangesNoRails() {
    assertThat(settings(0, Map.of())).isEqualTo(Map.of("NET_DEVICES", "eth0"));
    assertThat(settings(1, Map.of())).isEqualTo(Map.of("NET_DEVICES", "eth0,mlx5_0:1"));
  }

  @Test
  void severalAdaptersAreRails() {
    assertThat(settings(2, Map.of()))
        .isEqualTo(Map.of("NET_DEVICES", "eth0,mlx5_0:1,mlx5_1:1", "MAX_RMA_RAILS", "2"));
    assertThat(settings(8, Map.of())).containsEntry("MAX_RMA_RAILS", "4");
  }

  @Test
  void adaptersThatMayBeOfSeveralNetworksAreNoRails() {
    assertThat(devices(4, false).settings(Map.of())).containsOnlyKeys("NET_DEVICES");
  }

  @Test
  void railsThatTheUserHasSetStayAsTheyAre() {
    assertThat(settings(4, Map.of("UCX_MAX_RMA_RAILS", "1"))).containsOnlyKeys("NET_DEVICES");
    assertThat(settings(4, Map.of("UCX_MAX_RMA_LANES", "1"))).containsOnlyKeys("NET_DEVICES");
  }
}
