package io.zerohop.shuffle.transport.ucx.owner;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.transport.ucx.engine.UcxCompletion;
import io.zerohop.shuffle.transport.ucx.engine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.engine.UcxMemory;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.junit.jupiter.api.Test;

class MessageSenderTest {
  private static final List<MessageSender.Message> MESSAGES =
      List.of(new MessageSender.Message(0, 64, 8), new MessageSender.Message(8, 128, 4));

  private final Deque<UcxCompletion> underWay = new ArrayDeque<>();
  private final List<String> ends = new ArrayList<>();
  private boolean broken;

  private final UcxEndpoint reader =
      new UcxEndpoint() {
        @Override
        public void get(
            final byte[] key,
            final long remoteAddress,
            final long localAddress,
            final long bytes,
            final UcxMemory gpu,
            final UcxCompletion done) {
          throw new AssertionError("nothing is got from a reader");
        }

        @Override
        public void send(
            final long id,
            final long offset,
            final long address,
            final long bytes,
            final UcxCompletion done) {
          if (broken) {
            throw new UcxException("UCX has ended", null);
          }
          underWay.add(done);
        }

        @Override
        public void close() {}
      };

  private final MessageSender sending = new MessageSender(reader, 1, MESSAGES, ends::add);

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
    assertThat(sending.failure()).isEqualTo("UCX has ended");
    assertThat(ends).containsExactly("UCX has ended");
  }
}
