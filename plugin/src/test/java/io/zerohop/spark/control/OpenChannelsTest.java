package io.zerohop.spark.control;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.embedded.EmbeddedChannel;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.spark.control.ControlConnector.ControlSecurity;
import io.zerohop.spark.control.OpenChannels.ControlLimits;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportResponseHandler;
import org.apache.spark.network.util.TransportFrameDecoder;
import org.junit.jupiter.api.Test;

class OpenChannelsTest {
  private static final int MANY = 4 * ControlLimits.DEFAULT.unproven();

  private final OpenChannels channels =
      new OpenChannels(ControlLimits.DEFAULT, Config.defaults(), true);
  private final AtomicInteger looks = new AtomicInteger();

  /** A connection that counts how often somebody asks whether it has proved itself. */
  private TransportClient opened() {
    return opened("10.0.0.1");
  }

  private TransportClient opened(final String address) {
    final EmbeddedChannel channel =
        new EmbeddedChannel() {
          @Override
          protected SocketAddress remoteAddress0() {
            return InetSocketAddress.createUnresolved(address, 1);
          }
        };
    channel
        .pipeline()
        .addLast(TransportFrameDecoder.HANDLER_NAME, new ChannelInboundHandlerAdapter());
    final TransportClient client =
        new TransportClient(channel, new TransportResponseHandler(channel)) {
          @Override
          public String getClientId() {
            looks.incrementAndGet();
            return super.getClientId();
          }
        };
    channels.opened(client);
    return client;
  }

  @Test
  void eachNewConnectionCostsTheSameHoweverManyThereAre() {
    for (int i = 0; i < MANY; i++) {
      final TransportClient client = opened();
      assertThat(client.isActive()).isTrue();
      client.setClientId(ControlSecurity.USER);
    }
    assertThat(looks.get()).isLessThanOrEqualTo(2 * MANY);
  }

  @Test
  void onlySoManyMayBeUnproven() {
    for (int i = 0; i < ControlLimits.DEFAULT.unproven(); i++) {
      opened(address(i)).setClientId(ControlSecurity.USER);
    }
    final List<TransportClient> idle = new ArrayList<>();
    for (int i = 0; i < ControlLimits.DEFAULT.unproven(); i++) {
      idle.add(opened(address(i < 32 ? 0 : i))); // The first has most.
    }
    assertThat(idle).allMatch(TransportClient::isActive);
    assertThat(opened(address(1)).isActive()).as("one more").isTrue();
    assertThat(idle.stream().filter(TransportClient::isActive)).hasSize(idle.size() - 1);
    assertThat(idle.get(0).isActive()).as("the oldest of the address with most").isFalse();
    end(idle.get(0));
    assertThat(channels.strangers()).as("strangers").isZero();
    end(idle.get(1));
    assertThat(channels.strangers()).as("strangers").isEqualTo(1);
  }

  @Test
  void oneAddressHasALimitOfItsOwn() {
    final TransportClient other = opened(address(1));
    final List<TransportClient> idle = new ArrayList<>();
    for (int i = 0; i < MANY; i++) {
      idle.add(opened(address(0)));
    }
    assertThat(other.isActive()).as("another address").isTrue();
    final int left = ControlLimits.DEFAULT.unprovenOfOne();
    assertThat(idle.subList(0, MANY - left)).noneMatch(TransportClient::isActive);
    assertThat(idle.subList(MANY - left, MANY)).allMatch(TransportClient::isActive);
  }

  @Test
  void whoHasProvedItselfMakesNoRoom() {
    final TransportClient member = opened();
    member.setClientId(ControlSecurity.USER);
    for (int i = 0; i < MANY; i++) {
      opened();
    }
    assertThat(member.isActive()).isTrue();
  }

  private void end(final TransportClient client) {
    client.getChannel().close();
    channels.ended(client);
  }

  /** One of so many that none of them has as many connections as one address may have. */
  private static String address(final int i) {
    return "10.0.0." + i % 16;
  }
}
