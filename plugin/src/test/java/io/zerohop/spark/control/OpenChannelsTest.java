package io.zerohop.spark.control;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.embedded.EmbeddedChannel;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportResponseHandler;
import org.apache.spark.network.util.TransportFrameDecoder;
import org.junit.jupiter.api.Test;

class OpenChannelsTest {
  private static final int MANY = 4 * ControlLimits.DEFAULT.unproven();

  private final OpenChannels channels = new OpenChannels(ControlLimits.DEFAULT, true);
  private final AtomicInteger looks = new AtomicInteger();

  /** A connection that counts how often somebody asks whether it has proved itself. */
  private TransportClient opened() {
    final EmbeddedChannel channel = new EmbeddedChannel();
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
      opened().setClientId(ControlSecurity.USER);
    }
    TransportClient last = null;
    for (int i = 0; i < ControlLimits.DEFAULT.unproven(); i++) {
      last = opened();
      assertThat(last.isActive()).isTrue();
    }
    assertThat(opened().isActive()).as("one more").isFalse();
    last.setClientId(ControlSecurity.USER);
    assertThat(opened().isActive()).as("there is a place again").isTrue();
  }
}
