package io.zerohop.shuffle.transport.remote;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.TestClock;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.shuffle.transport.Transport;
import io.zerohop.shuffle.transport.Transport.NotGettableException;
import io.zerohop.shuffle.transport.remote.Wire.Questions;
import io.zerohop.shuffle.transport.remote.Wire.RemoteExtents;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The lease of a transfer is given back once, when nothing is read under it any more. */
class RemoteTransferTest {
  private static final long LEASE = 77;
  private static final long LIMIT = TimeUnit.SECONDS.toNanos(10);

  private final Link link = new Link();
  private final TestClock clock = TestClock.standing();
  private final RemotePeer peer =
      new RemotePeer("owner", "a fake", ShuffleCode.CONNECTION_LOST, link, clock);
  private final List<Block> failed = new ArrayList<>();
  private final Slabs slabs =
      new Slabs(
          bytes -> {
            throw new AssertionError("nothing is received");
          },
          0,
          clock);
  private final List<Block> blocks = List.of(new Block(3, 4, 0, 5, 1));

  /** Keeps the questions until the test answers them. */
  private static final class Link implements ControlLink {
    private final List<ByteBuffer> questions = new ArrayList<>();
    private final List<CompletableFuture<ByteBuffer>> answers = new ArrayList<>();

    @Override
    public CompletableFuture<ByteBuffer> ask(final ByteBuffer question) {
      questions.add(question);
      final CompletableFuture<ByteBuffer> answer = new CompletableFuture<>();
      answers.add(answer);
      return answer;
    }

    /** How often a lease was given back. */
    long closes() {
      return questions.stream().filter(question -> question.get(0) == Wire.CLOSE).count();
    }

    @Override
    public boolean alive() {
      return true;
    }

    @Override
    public void onClosed(final Runnable action) {}

    @Override
    public void close() {}
  }

  private final class Sink implements Transport.Sink {
    @Override
    public void arrived(final Block block, final Transport.Payload payload) {
      throw new AssertionError("nothing was moved");
    }

    @Override
    public void failed(final Block lost, final Throwable cause) {
      failed.add(lost);
    }
  }

  /** One whose blocks cannot be had in this way, as it finds out when it knows where they lie. */
  private final class Refused extends RemoteTransfer {
    Refused() {
      super(peer, blocks, new Sink(), RemoteTransferTest.this.slabs, Runnable::run);
    }

    @Override
    protected void receive() {
      fail(new NotGettableException("a test"));
    }
  }

  private void answerOpen(final int heldBlocks) {
    final RemoteExtents extents = new RemoteExtents();
    for (int i = 0; i < heldBlocks; i++) {
      extents.add(1, 0, 8, false, 0);
    }
    extents.endBlock();
    final ByteBuffer answer = ByteBuffer.allocate(1 + Long.BYTES + extents.encodedBytes());
    answer.put(Wire.GRANTED).putLong(LEASE);
    extents.write(answer);
    link.answers.get(0).complete(answer.flip());
  }

  @Test
  void aTransferThatFailsGivesItsLeaseBack() {
    new Refused().start();
    answerOpen(1);
    assertThat(failed).isEqualTo(blocks);
    assertThat(link.closes()).isEqualTo(1);
  }

  @Test
  void aTransferOfBlocksThatTheOwnerDoesNotHoldGivesItsLeaseBack() {
    new Refused().start();
    answerOpen(0);
    assertThat(failed).isEqualTo(blocks);
    assertThat(link.closes()).isEqualTo(1);
  }

  @Test
  void aLeaseThatComesWhenTheTransferHasEndedIsGivenBackAtOnce() {
    final RemoteTransfer transfer = new Refused();
    transfer.start();
    clock.advance(Duration.ofNanos(2 * LIMIT));
    transfer.checkStalled(LIMIT);
    assertThat(failed).isEqualTo(blocks);
    assertThat(link.closes()).isZero(); // There is none yet.
    answerOpen(1);
    assertThat(failed).isEqualTo(blocks);
    assertThat(link.closes()).isEqualTo(1);
  }

  /** Reads until the test says that it has read. */
  private final class Reading extends RemoteTransfer {
    Reading() {
      super(peer, blocks, new Sink(), RemoteTransferTest.this.slabs, Runnable::run);
    }

    @Override
    protected void receive() {
      assertThat(beginReading()).isTrue();
    }

    boolean ends() {
      return endReading();
    }
  }

  /** Waits for its turn at the owner. */
  private final class Queued extends RemoteTransfer {
    Queued() {
      super(peer, blocks, new Sink(), RemoteTransferTest.this.slabs, Runnable::run);
    }

    @Override
    protected void receive() {
      askInTurn(Questions.send(lease(), 1)).thenAccept(answer -> {}).exceptionally(this::failed);
    }
  }

  private Queued queued() {
    final Queued transfer = new Queued();
    transfer.start();
    answerOpen(1);
    assertThat(link.questions.get(1).get(0)).isEqualTo(Wire.SEND);
    return transfer;
  }

  /** A saturated owner sends what was asked for first: that is no stall. */
  @Test
  void whoWaitsForItsTurnWaitsAsLongAsTheLeaseLasts() {
    final Queued transfer = queued();
    clock.advance(RemoteService.LEASE_LIMIT);
    transfer.checkStalled(LIMIT);
    assertThat(failed).isEmpty();
    clock.advance(Duration.ofNanos(1));
    transfer.checkStalled(LIMIT);
    assertThat(failed).isEqualTo(blocks);
  }

  @Test
  void whoseTurnHasComeStallsAsSoonAsOthers() {
    final Queued transfer = queued();
    clock.advance(Duration.ofNanos(2 * LIMIT));
    link.answers.get(1).complete(ByteBuffer.allocate(9).put(Wire.GRANTED).putLong(1).flip());
    clock.advance(Duration.ofNanos(LIMIT));
    transfer.checkStalled(LIMIT);
    assertThat(failed).isEmpty();
    clock.advance(Duration.ofNanos(1));
    transfer.checkStalled(LIMIT);
    assertThat(failed).isEqualTo(blocks);
  }

  /** Messages may come before the answer. */
  @Test
  void whatComesShowsThatItIsItsTurn() {
    final Queued transfer = queued();
    transfer.progress();
    clock.advance(Duration.ofNanos(2 * LIMIT));
    transfer.checkStalled(LIMIT);
    assertThat(failed).isEqualTo(blocks);
  }

  @Test
  void aFailedTransferGivesItsLeaseBackBehindTheLastRead() {
    final Reading transfer = new Reading();
    transfer.start();
    answerOpen(1);
    transfer.fail(new NotGettableException("a test"));
    assertThat(failed).isEqualTo(blocks);
    assertThat(link.closes()).isZero();
    assertThat(transfer.ends()).isFalse();
    assertThat(link.closes()).isEqualTo(1);
  }

  @Test
  void whoHasReadAndNotEndedAsksForTheEndItself() {
    final Reading transfer = new Reading();
    transfer.start();
    answerOpen(1);
    assertThat(transfer.ends()).isTrue();
    assertThat(link.closes()).isZero();
    transfer.fail(new NotGettableException("a test"));
    assertThat(link.closes()).isEqualTo(1);
  }
}
