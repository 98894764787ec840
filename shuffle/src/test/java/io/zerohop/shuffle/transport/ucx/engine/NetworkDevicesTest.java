package io.zerohop.shuffle.transport.ucx.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.net.NetworkInterface;
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
    assertThat(NetworkDevices.of("127.0.0.1").orElseThrow().split(",")).startsWith(loopback);
  }

  @Test
  void anAddressOfAnotherHostNamesNone() {
    assertThat(NetworkDevices.of("203.0.113.1")).isEmpty();
  }

  @Test
  void aNameThatNobodyKnowsNamesNone() {
    assertThat(NetworkDevices.of("no-such-host.invalid")).isEmpty();
  }
}
