package io.zerohop.shuffle.transport.remote;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.transport.remote.Carrier.CarrierException;
import io.zerohop.shuffle.transport.remote.Carrier.Completion;
import io.zerohop.shuffle.transport.remote.Carrier.Road;
import io.zerohop.shuffle.transport.remote.Sends.MessageSender;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.junit.jupiter.api.Test;

class MessageSenderTest {
  private static final long TRANSFER = 1;
  private static final List<MessageSender.Message> MESSAGES =
      List.of(new MessageSender.Message(0, 64, 8), new MessageSender.Message(8, 128, 4));

  private final Deque<Completion> underWay = new ArrayDeque<>();
  private final List<String> ends = new ArrayList<>();
  private final List<Long> lost = new ArrayList<>();
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
        public void lost(final long id) {
          lost.add(id);
        }

        @Override
        public boolean alive() {
          return !broken;
        }

        @Override
        public void close() {}
      };

  private final MessageSender sending =
      new MessageSender(reader, TRANSFER, MESSAGES, 16, ends::add);

  @Test
  void endsOnceWhenAllIsSent() {
    sending.start();
    assertThat(sending.bytes()).isEqualTo(12);
    assertThat(sending.failure()).isNull();
    underWay.poll().done(null);
    assertThat(ends).isEmpty();
    underWay.poll().done(null);
    assertThat(ends).containsExactly((String) null);
    assertThat(lost).isEmpty();
  }

  /** The reader may know that the messages come, and would wait for them. */
  @Test
  void aTransferThatFailsIsToldToTheReaderOnce() {
    sending.start();
    assertThat(sending.answer().get()).isEqualTo(Wire.GRANTED);
    underWay.poll().done("the connection was lost");
    assertThat(lost).as("others are under way").isEmpty();
    underWay.poll().done("the connection was lost");
    assertThat(lost).containsExactly(TRANSFER);
    assertThat(ends).containsExactly("the connection was lost");
  }

  @Test
  void whatCannotBeBegunHasFailedAtOnce() {
    broken = true;
    sending.start();
    assertThat(sending.failure()).isEqualTo("the carrier has ended");
    assertThat(ends).containsExactly("the carrier has ended");
  }
}
