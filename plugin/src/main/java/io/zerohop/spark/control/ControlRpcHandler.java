package io.zerohop.spark.control;

import io.zerohop.device.ZerohopException.Category;
import io.zerohop.shuffle.transport.ControlService;
import io.zerohop.spark.log.SparkCode;
import java.nio.ByteBuffer;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.spark.network.client.RpcResponseCallback;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.server.OneForOneStreamManager;
import org.apache.spark.network.server.RpcHandler;
import org.apache.spark.network.server.StreamManager;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Brings questions to the service and its answers back. Stands behind Spark's own handler, which
 * lets nothing through before the other end has proved itself. Thread safe; calls of one connection
 * come by one thread.
 */
final class ControlRpcHandler extends RpcHandler {
  private static final Logger LOG = LoggerFactory.getLogger(ControlRpcHandler.class);

  private final ControlService service;
  private final ControlLimits limits;
  private final OpenChannels channels;
  private final StreamManager noStreams = new OneForOneStreamManager();
  private final AtomicLong lastLink = new AtomicLong();
  private final ConcurrentHashMap<TransportClient, Long> links = new ConcurrentHashMap<>();

  ControlRpcHandler(
      final ControlService service, final ControlLimits limits, final OpenChannels channels) {
    this.service = service;
    this.limits = limits;
    this.channels = channels;
  }

  @Override
  public void channelActive(final TransportClient client) {
    channels.opened(client);
  }

  @Override
  public void receive(
      final TransportClient client, final ByteBuffer question, final RpcResponseCallback callback) {
    final long link = links.computeIfAbsent(client, ignored -> lastLink.incrementAndGet());
    final AtomicBoolean answered = new AtomicBoolean();
    try {
      service.asked(
          link,
          question,
          answer -> {
            if (!answered.compareAndSet(false, true)) {
              throw new IllegalStateException("A question of link " + link + " has its answer");
            }
            answer(client, answer, callback);
          });
    } catch (final RuntimeException e) {
      if (answered.compareAndSet(false, true)) {
        callback.onFailure(new Refusal(e));
      } else {
        SparkCode.ANSWERED_TWICE.warn(
            LOG, "A question of {} has its answer, and then failed", client, e);
      }
    }
  }

  private void answer(
      final TransportClient client, final ByteBuffer answer, final RpcResponseCallback callback) {
    if (answer.remaining() > limits.answerBytes()) {
      callback.onFailure(
          new Refusal(
              Category.FALLBACK,
              "The answer has "
                  + answer.remaining()
                  + " bytes; at most "
                  + limits.answerBytes()
                  + " may be sent"));
    } else if (client.isActive()) {
      callback.onSuccess(answer.slice());
    }
  }

  @Override
  public void channelInactive(final TransportClient client) {
    try {
      final Long link = links.remove(client);
      if (link != null) {
        service.disconnected(link);
      }
    } finally {
      channels.ended(client);
    }
  }

  @Override
  public StreamManager getStreamManager() {
    return noStreams;
  }
}
