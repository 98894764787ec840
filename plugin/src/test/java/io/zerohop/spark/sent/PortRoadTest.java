package io.zerohop.spark.sent;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.embedded.EmbeddedChannel;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.host.HostDevice;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.conf.Config.SentCodec;
import io.zerohop.spark.sent.Connections.Connection;
import io.zerohop.spark.sent.MessageCodec.CodecChoice;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportResponseHandler;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Connections of a road: how many, which one a message takes, and what the loss of one means. */
class PortRoadTest {
  private static final int BYTES = 64;
  private static final int FURTHER = 3;

  private final HostBuffer memory = new HostDevice().hostBuffer(BYTES);
  private final AtomicInteger underWay = new AtomicInteger();
  private final List<EmbeddedChannel> channels = new ArrayList<>();
  private final List<TransportResponseHandler> responses = new ArrayList<>();
  private final List<String> ended = new ArrayList<>();
  private final Semaphore further = new Semaphore(FURTHER);
  private int reachable = Integer.MAX_VALUE;
  private PortRoad road = road(3);

  @AfterEach
  void nothingIsUnderWay() {
    road.close();
    channels.forEach(EmbeddedChannel::runPendingTasks);
    assertThat(channels).noneMatch(EmbeddedChannel::isOpen);
    assertThat(further.availablePermits()).isEqualTo(FURTHER);
    memory.close();
  }

  @Test
  void oneIsEnoughWhereNothingIsUnderWay() {
    assertThat(channels).hasSize(1);
    send(1);
    assertThat(channels).hasSize(1);
  }

  @Test
  void furtherOnesAreOpenedWhileAllAreBusy() {
    send(8);
    assertThat(channels).hasSize(3);
    // Each message is one object for Netty. The first two were sent before there was a choice.
    assertThat(channels.stream().map(channel -> channel.outboundMessages().size()))
        .containsExactly(3, 3, 2);
    assertThat(ended).isEmpty();
  }

  @Test
  void thoseThatAreThereGoOnIfNoFurtherOneCanBeOpened() {
    reachable = 1;
    send(5);
    assertThat(channels).hasSize(1);
    assertThat(channels.get(0).outboundMessages()).hasSize(5);
    assertThat(road.alive()).isTrue();
  }

  @Test
  void allRoadsTogetherHaveAFewFurtherOnes() {
    send(8);
    final PortRoad other = road(3);
    try {
      for (int i = 0; i < 8; i++) {
        other.send(7, 0, memory.address(), BYTES, why -> ended.add(String.valueOf(why)));
      }
      assertThat(further.availablePermits()).isZero();
      assertThat(channels).as("first ones, and further ones").hasSize(2 + FURTHER);
    } finally {
      other.close();
    }
    channels.forEach(EmbeddedChannel::runPendingTasks);
    assertThat(further.availablePermits()).as("those of the closed road are back").isEqualTo(1);
  }

  @Test
  void theLossOfOneIsTheLossOfAll() {
    send(4);
    responses.get(1).exceptionCaught(new IOException("Connection reset by peer"));
    assertThat(road.alive()).isFalse();
    channels.forEach(EmbeddedChannel::runPendingTasks);
    assertThat(channels).hasSize(3).noneMatch(EmbeddedChannel::isOpen);
    final int failed = ended.size();
    send(1);
    assertThat(ended).hasSize(failed + 1).last().isEqualTo("the connection was lost");
  }

  /** Which takes long if the reader's host is gone: those that send go on meanwhile. */
  @Test
  void furtherOnesAreNotOpenedByThreadsThatSend() {
    road.close();
    final List<Runnable> later = new ArrayList<>();
    road = road(2, Runnable::run, later::add);
    send(3);
    assertThat(channels.get(1).outboundMessages()).hasSize(3);
    assertThat(later).hasSize(1);
    later.remove(0).run();
    assertThat(channels).hasSize(3);
  }

  @Test
  void oneThatIsOpenedBesideTheCloseIsClosed() {
    road.close();
    final List<Runnable> later = new ArrayList<>();
    road = road(2, later::add, later::add);
    send(2);
    later.remove(0).run();
    later.remove(0).run();
    assertThat(later).hasSize(1); // It opens the second one.
    road.close();
    later.remove(0).run();
    assertThat(channels.get(2).isOpen()).isFalse();
  }

  private PortRoad road(final int connections) {
    return road(connections, Runnable::run, Runnable::run);
  }

  private PortRoad road(final int connections, final Executor sends, final Executor connects) {
    return new PortRoad(
        this::connect,
        connections,
        new PortRoad.Means(sends, connects, null, Clock.system(), new LongAdder(), further),
        new CodecChoice(SentCodec.NONE, Clock.system()),
        transfer -> {});
  }

  private Connection connect() {
    if (channels.size() == reachable) {
      throw new IllegalStateException("it cannot be reached");
    }
    final EmbeddedChannel channel = new EmbeddedChannel();
    final TransportResponseHandler handler = new TransportResponseHandler(channel);
    channels.add(channel);
    responses.add(handler);
    return new Connection(new TransportClient(channel, handler), new byte[0], underWay);
  }

  private void send(final int messages) {
    for (int i = 0; i < messages; i++) {
      road.send(7, 0, memory.address(), BYTES, why -> ended.add(String.valueOf(why)));
    }
  }
}
