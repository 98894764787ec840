package io.zerohop.spark.control;

import java.nio.ByteBuffer;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.server.OneForOneStreamManager;
import org.apache.spark.network.server.RpcHandler;
import org.apache.spark.network.server.StreamManager;

/**
 * The asking end of a connection. Spark's connections carry questions both ways, and nobody proves
 * anything to the end that connected before it may ask there; so this one answers none. Thread
 * safe.
 */
final class AskingRpcHandler extends RpcHandler {
  private final OpenChannels channels;
  private final StreamManager noStreams = new OneForOneStreamManager();

  AskingRpcHandler(final OpenChannels channels) {
    this.channels = channels;
  }

  @Override
  public void channelActive(final TransportClient client) {
    channels.opened(client);
  }

  @Override
  public void receive(
      final TransportClient client, final ByteBuffer question, final RpcResponseCallback callback) {
    throw new UnsupportedOperationException("This end asks");
  }

  @Override
  public void channelInactive(final TransportClient client) {
    channels.ended(client);
  }

  @Override
  public StreamManager getStreamManager() {
    return noStreams;
  }
}
