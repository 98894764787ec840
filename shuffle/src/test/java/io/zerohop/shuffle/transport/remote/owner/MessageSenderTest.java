package io.zerohop.shuffle.transport.remote.owner;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.transport.remote.carrier.CarrierException;
import io.zerohop.shuffle.transport.remote.carrier.Completion;
import io.zerohop.shuffle.transport.remote.carrier.Road;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.junit.jupiter.api.Test;

class MessageSenderTest {
  private static final List<MessageSender.Message> MESSAGES =
      List.of(new MessageSender.Message(0, 64, 8), new MessageSender.Message(8, 128, 4));

  private final Deque<Completion> underWay = new ArrayDeque<>();
  private final List<String> ends = new ArrayList<>();
  private boolean broken;

  private final Road reader =
      new Road() {
        @Override
        public void send(
            final long id,
            final long offset,
            final long address,
            final long bytes,
            final Completion done) {
          if (broken) {
            throw new CarrierException("the carrier has ended", null);
          }
          underWay.add(done);
        }

        @Override
        public void close() {}
      };

  private final MessageSender sending = new MessageSender(reader, 1, MESSAGES, 16, ends::add);

  @Test
  void endsOnceWhenAllIsSent() {
    sending.start();
    assertThat(sending.bytes()).isEqualTo(12);
    assertThat(sending.failure()).isNull();
    underWay.poll().done(null);
    assertThat(ends).isEmpty();
    underWay.poll().done(null);
    assertThat(ends).containsExactly((String) null);
  }

  @Test
  void whatCannotBeBegunHasFailedAtOnce() {
    broken = true;
    sending.start();
    assertThat(sending.failure()).isEqualTo("the carrier has ended");
    assertThat(ends).containsExactly("the carrier has ended");
  }
}
