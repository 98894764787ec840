package io.zerohop.shuffle.transport.remote.reader;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Device;
import io.zerohop.device.host.HostDevice;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.shuffle.transport.Transport;
import io.zerohop.shuffle.transport.remote.carrier.Carrier.CarrierException;
import io.zerohop.shuffle.transport.remote.memory.Slabs;
import io.zerohop.shuffle.transport.remote.memory.Slabs.Slab;
import io.zerohop.shuffle.transport.remote.reader.RemoteTransfer.SentTransfer;
import io.zerohop.shuffle.transport.remote.wire.RemoteExtents;
import io.zerohop.shuffle.transport.remote.wire.Wire;
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

  @Test
  void whatComesAfterATransferFailedLandsNowhere() {
    final HandLink link = new HandLink();
    final RemotePeer peer =
        new RemotePeer("1", "a test", ShuffleCode.CONNECTION_LOST, link, Clock.system());
    final List<String> failed = new ArrayList<>();
    final Transport.Sink sink =
        new Transport.Sink() {
          @Override
          public void arrived(final Block block, final Transport.Payload payload) {
            throw new AssertionError("nothing has arrived");
          }

          @Override
          public void failed(final Block block, final Throwable cause) {
            failed.add(cause.getMessage());
          }
        };
    final Block block = new Block(1, 2, 3, 4, BYTES);
    new SentTransfer(peer, List.of(block), sink, slabs, arrivals, Runnable::run).start();

    final RemoteExtents extents = new RemoteExtents();
    extents.add(1 << 12, 0, BYTES, false, 0);
    extents.endBlock();
    final ByteBuffer opened = ByteBuffer.allocate(9 + extents.encodedBytes());
    opened.put(Wire.GRANTED).putLong(77);
    extents.write(opened);
    link.answers.get(0).complete(opened.flip());

    // The owner has sent everything, so it says; the last message is not here yet.
    final long id = link.questions.get(1).getLong(9);
    final ByteBuffer sent = ByteBuffer.allocate(9).put(Wire.GRANTED).putLong(BYTES).flip();
    link.answers.get(1).complete(sent);
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
  void aFailedMessageIsNeverTakenForOneThatCame() {
    final Slab slab = slabs.take(BYTES);
    final MessageReceiver.Waiting[] waiting = new MessageReceiver.Waiting[1];
    // The owner's answer comes just now, on another thread.
    waiting[0] = arrivals.expect(slab, BYTES, () -> waiting[0].total(BYTES));
    assertThat(arrivals.arriving(waiting[0].id(), 0, BYTES, () -> {})).isEqualTo(slab.address());
    arrivals.arrived(waiting[0].id(), 0, BYTES, "the peer is lost");
    assertThat(waiting[0].complete()).isCompletedExceptionally();
    waiting[0].end();
    slab.release();
  }

  /** As when the owner's host is gone in the middle of it: the rest never comes. */
  @Test
  void aMessageThatIsUnderWayIsStoppedWhenNobodyWaitsForIt() {
    final Slab slab = slabs.take(BYTES);
    final MessageReceiver.Waiting waiting = arrivals.expect(slab, BYTES, () -> {});
    final List<String> stopped = new ArrayList<>();
    final Runnable stop =
        () -> {
          stopped.add("stopped");
          arrivals.arrived(waiting.id(), 0, BYTES / 2, "it was stopped");
        };
    assertThat(arrivals.arriving(waiting.id(), 0, BYTES / 2, stop)).isEqualTo(slab.address());
    assertThat(arrivals.arriving(waiting.id(), BYTES / 2, BYTES / 2, () -> {})).isPositive();
    slab.release();
    waiting.end();
    waiting.end();
    assertThat(stopped).as("once").hasSize(1);
    assertThat(slabs.taken()).as("the other one cannot be stopped").isEqualTo(1);
    arrivals.arrived(waiting.id(), BYTES / 2, BYTES / 2, null);
    assertThat(slabs.taken()).isZero();
    assertThat(arrivals.size()).isZero();
  }
}
