package io.zerohop.shuffle.transport.remote;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.TestClock;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.shuffle.transport.Transport;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** When an owner that says nothing is given up. */
class RemotePeerTest {
  private static final Config CONF = Config.defaults();

  /** Of silence. */
  private static final Duration LIMIT = CONF.requestTimeout().dividedBy(2);

  private static final Duration PAUSE = LIMIT.plusSeconds(1);

  /** As often as an executor looks. */
  private static final Duration STEP = Duration.ofMillis(100);

  private final TestClock clock = TestClock.standing();
  private final List<CompletableFuture<ByteBuffer>> pings = new ArrayList<>();
  private final List<Block> failed = new ArrayList<>();
  private final RemotePeer peer =
      new RemotePeer("owner", "a fake", ShuffleCode.CONNECTION_LOST, new Link(), clock);

  /** Keeps the pings until the test answers them. */
  private final class Link implements ControlLink {
    private boolean closed;

    @Override
    public CompletableFuture<ByteBuffer> ask(final ByteBuffer question) {
      final CompletableFuture<ByteBuffer> answer = new CompletableFuture<>();
      if (question.get(0) == Wire.PING) {
        pings.add(answer);
      }
      return answer;
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
    }
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

  @BeforeEach
  void aTransferIsUnderWay() {
    final Slabs none =
        new Slabs(
            bytes -> {
              throw new AssertionError("nothing is received");
            },
            0,
            clock);
    new RemoteTransfer(peer, List.of(new Block(3, 4, 0, 5, 1)), new Sink(), none, Runnable::run) {
      @Override
      protected void receive() {}
    }.start();
    assertThat(look()).isTrue();
  }

  private boolean look() {
    return peer.check(CONF);
  }

  /** Looks again and again; returns for how long the owner was taken for alive, and at most so. */
  private Duration aliveFor(final Duration most) {
    Duration passed = Duration.ZERO;
    while (passed.compareTo(most) < 0 && look()) {
      clock.advance(STEP);
      passed = passed.plus(STEP);
    }
    return passed;
  }

  private void answer(final int ping) {
    pings.get(ping).complete(Wire.granted(0).flip());
  }

  @Test
  void whoSaysNothingIsAskedAndGivenUp() {
    assertThat(aliveFor(LIMIT)).isEqualTo(LIMIT);
    assertThat(pings).hasSize(1);
    assertThat(aliveFor(LIMIT)).isLessThan(Duration.ofSeconds(1));
    assertThat(failed).hasSize(1);
  }

  @Test
  void whoAnswersStays() {
    for (int ping = 0; ping < 20; ping++) {
      assertThat(aliveFor(LIMIT.dividedBy(2).plus(STEP.multipliedBy(5))))
          .isGreaterThan(LIMIT.dividedBy(2));
      assertThat(pings).hasSize(ping + 1);
      answer(ping);
    }
    assertThat(failed).isEmpty();
  }

  /** As by a collection of the whole heap: the owner may have answered all the time. */
  @Test
  void aPauseOfThisExecutorIsNotTheOwnersSilence() {
    clock.advance(PAUSE);
    assertThat(look()).isTrue();
    assertThat(pings).as("it is asked first").hasSize(1);
    clock.advance(PAUSE);
    assertThat(look()).as("its answer may be there, and not read yet").isTrue();
    answer(0);
    assertThat(look()).isTrue();
    clock.advance(PAUSE);
    assertThat(look()).isTrue();
    assertThat(pings).hasSize(2);
    assertThat(aliveFor(LIMIT)).as("it says nothing").isLessThan(LIMIT);
    assertThat(failed).hasSize(1);
  }

  /** It has said something since, and is asked anew. */
  @Test
  void aPingOfAnEarlierSilenceDoesNotCount() {
    clock.advance(PAUSE);
    assertThat(look()).isTrue();
    peer.progress();
    clock.advance(PAUSE);
    assertThat(look()).isTrue();
    assertThat(pings).hasSize(2);
  }

  @Test
  void aPingThatWasRefusedIsRepeatedWithinTheSameTime() {
    clock.advance(PAUSE);
    assertThat(look()).isTrue();
    pings.get(0).completeExceptionally(new IllegalStateException("it has no room"));
    assertThat(look()).isTrue();
    assertThat(pings).hasSize(2);
    assertThat(aliveFor(LIMIT)).isLessThan(LIMIT);
  }
}
