package io.zerohop.shuffle.transport.remote;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Device;
import io.zerohop.device.host.HostDevice;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.shuffle.transport.Transport;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierException;
import io.zerohop.shuffle.transport.remote.SendingNode.MessageReceiver;
import io.zerohop.shuffle.transport.remote.Slabs.Slab;
import io.zerohop.shuffle.transport.remote.Wire.RemoteExtents;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Messages that come late, or fail, while their transfer is ending. */
final class MessageReceiverTest {
  private static final int BYTES = 1_000;
  private final Device device = new HostDevice();
  private final Slabs slabs = new Slabs(device::hostBuffer, 64 << 20, Clock.system());
  private final MessageReceiver arrivals = new MessageReceiver();

  @AfterEach
  void close() {
    slabs.close();
    device.close();
  }

  /** Both ends of the owner's answers, by hand. */
  private static final class HandLink implements ControlLink {
    private final List<ByteBuffer> questions = new ArrayList<>();
    private final List<CompletableFuture<ByteBuffer>> answers = new ArrayList<>();
    private boolean closed;

    @Override
    public CompletableFuture<ByteBuffer> ask(final ByteBuffer question) {
      questions.add(question);
      answers.add(new CompletableFuture<>());
      return answers.get(answers.size() - 1);
    }

    @Override
    public boolean alive() {
      return !closed;
    }

    @Override
    public void onClosed(final Runnable action) {}

    @Override
    public void close() {
      closed = true;
      answers.forEach(
          answer -> answer.completeExceptionally(new CarrierException("the link broke", null)));
    }
  }

  private final HandLink link = new HandLink();
  private final List<String> failed = new ArrayList<>();
  private final List<Block> came = new ArrayList<>();

  /** Runs once, the next time that something asks for the time. */
  private Runnable atNextLook = () -> {};

  private final Clock clock =
      (Clock)
          Proxy.newProxyInstance(
              Clock.class.getClassLoader(),
              new Class<?>[] {Clock.class},
              (proxy, method, arguments) -> {
                final Runnable action = atNextLook;
                atNextLook = () -> {};
                action.run();
                return method.invoke(Clock.system(), arguments);
              });
  private final RemotePeer peer =
      new RemotePeer("1", "a test", ShuffleCode.CONNECTION_LOST, link, clock);
  private final Transport.Sink sink =
      new Transport.Sink() {
        @Override
        public void arrived(final Block block, final Transport.Payload payload) {
          came.add(block);
          payload.release();
        }

        @Override
        public void failed(final Block block, final Throwable cause) {
          failed.add(cause.getMessage());
        }
      };

  /** Begins a transfer whose owner holds the block; returns the number that messages carry. */
  private long begin() {
    arrivals.fetch(peer, List.of(new Block(1, 2, 3, 4, BYTES)), sink, slabs, Runnable::run);
    final RemoteExtents extents = new RemoteExtents();
    extents.add(1 << 12, 0, BYTES, false, 0);
    extents.endBlock();
    final ByteBuffer opened = ByteBuffer.allocate(9 + extents.encodedBytes());
    opened.put(Wire.GRANTED).putLong(77);
    extents.write(opened);
    link.answers.get(0).complete(opened.flip());
    return link.questions.get(1).getLong(9);
  }

  /** The owner has sent everything, so it says. */
  private void sent() {
    link.answers.get(1).complete(ByteBuffer.allocate(9).put(Wire.GRANTED).putLong(BYTES).flip());
  }

  @Test
  void whatComesAfterATransferFailedLandsNowhere() {
    final long id = begin();
    sent(); // The last message is not here yet.
    peer.breakOff("a test wants it");
    assertThat(failed).hasSize(1);
    assertThat(slabs.taken()).isZero();

    final Slab ofAnother = slabs.take(BYTES);
    assertThat(arrivals.arriving(id, 0, BYTES, () -> {}))
        .as("where a late message is received (another's memory is at %d)", ofAnother.address())
        .isZero();
    assertThat(arrivals.size()).isZero();
    ofAnother.release();
  }

  @Test
  void whatHasComeIsHandedOut() {
    final long id = begin();
    assertThat(arrivals.arriving(id, 0, BYTES, () -> {})).isPositive();
    arrivals.arrived(id, 0, BYTES, null);
    assertThat(came).isEmpty();
    sent();
    assertThat(came).hasSize(1);
    assertThat(failed).isEmpty();
    assertThat(slabs.taken()).isZero();
    assertThat(arrivals.size()).isZero();
  }

  @Test
  void aFailedMessageIsNeverTakenForOneThatCame() {
    final long id = begin();
    assertThat(arrivals.arriving(id, 0, BYTES, () -> {})).isPositive();
    atNextLook = this::sent; // The owner's answer comes just now, as if on another thread.
    arrivals.arrived(id, 0, BYTES, "the peer is lost");
    assertThat(came).isEmpty();
    assertThat(failed).singleElement().asString().contains("the peer is lost");
    assertThat(slabs.taken()).isZero();
  }

  /** As when the owner's host is gone in the middle of it: the rest never comes. */
  @Test
  void aMessageThatIsUnderWayIsStoppedWhenNobodyWaitsForIt() {
    final long id = begin();
    final List<String> stopped = new ArrayList<>();
    final Runnable stop =
        () -> {
          stopped.add("stopped");
          arrivals.arrived(id, 0, BYTES / 2, "it was stopped");
        };
    assertThat(arrivals.arriving(id, 0, BYTES / 2, stop)).isPositive();
    assertThat(arrivals.arriving(id, BYTES / 2, BYTES / 2, () -> {})).isPositive();
    peer.breakOff("a test wants it");
    assertThat(failed).hasSize(1);
    assertThat(stopped).as("once").hasSize(1);
    assertThat(arrivals.arriving(id, 0, 1, () -> {})).as("nothing more is taken").isZero();
    assertThat(slabs.taken()).as("the other one cannot be stopped").isEqualTo(1);
    arrivals.arrived(id, BYTES / 2, BYTES / 2, null);
    assertThat(slabs.taken()).isZero();
    assertThat(arrivals.size()).isZero();
  }
}
