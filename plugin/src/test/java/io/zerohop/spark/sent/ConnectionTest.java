package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.embedded.EmbeddedChannel;
import io.zerohop.spark.sent.Connections.Connection;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportResponseHandler;
import org.junit.jupiter.api.Test;

class ConnectionTest {
  private static final UploadId WORD = UploadId.word(UploadId.ANSWER, 1, 2, 4);

  private final EmbeddedChannel channel = new EmbeddedChannel();
  private final TransportResponseHandler responses = new TransportResponseHandler(channel);
  private final AtomicInteger underWay = new AtomicInteger();
  private final Connection connection =
      new Connection(new TransportClient(channel, responses), new byte[0], underWay);

  /** Spark says of uploads that they failed before Netty has closed the channel. */
  @Test
  void oneThatFailsAnUploadIsDeadBeforeThatIsTold() {
    final List<Boolean> alive = new ArrayList<>();
    connection.upload(WORD, ByteBuffer.allocate(4), (reply, why) -> alive.add(connection.alive()));
    assertThat(connection.alive()).isTrue();
    responses.exceptionCaught(new IOException("Connection reset by peer"));
    assertThat(alive).containsExactly(false);
    assertThat(channel.isOpen()).isFalse();
    assertThat(underWay).hasValue(0);
  }
}
