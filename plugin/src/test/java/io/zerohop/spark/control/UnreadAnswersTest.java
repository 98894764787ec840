package io.zerohop.spark.control;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.channel.embedded.EmbeddedChannel;
import io.zerohop.spark.control.OpenChannels.UnreadAnswers;
import org.junit.jupiter.api.Test;

class UnreadAnswersTest {
  private static final int LIMIT = 100;

  private final EmbeddedChannel channel = new EmbeddedChannel(new UnreadAnswers(LIMIT));

  @Test
  void whoReadsNothingIsClosed() {
    channel.write(answer()); // It is not flushed, as where the socket takes nothing.
    final ChannelFuture second = channel.write(answer());
    assertThat(second.cause()).hasMessageContaining("60 bytes of answers were not read");
    assertThat(channel.isOpen()).isFalse();
    channel.finishAndReleaseAll();
  }

  @Test
  void whoReadsIsNot() {
    for (int i = 0; i < 10; i++) {
      assertThat(channel.writeAndFlush(answer()).isSuccess()).isTrue();
    }
    assertThat(channel.isOpen()).isTrue();
    channel.finishAndReleaseAll();
  }

  private static ByteBuf answer() {
    return Unpooled.buffer(60).writeZero(60);
  }
}
