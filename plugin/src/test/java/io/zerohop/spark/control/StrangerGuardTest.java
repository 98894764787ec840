package io.zerohop.spark.control;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import io.zerohop.spark.control.ControlConnector.ForeignBytesException;
import io.zerohop.spark.control.OpenChannels.StrangerGuard;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.client.TransportResponseHandler;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class StrangerGuardTest {
  private static final int STRANGER = 40;
  private static final int MEMBER = 400;

  private final EmbeddedChannel channel = new EmbeddedChannel();
  private final TransportClient client =
      new TransportClient(channel, new TransportResponseHandler(channel));

  StrangerGuardTest() {
    channel.pipeline().addLast(new StrangerGuard(client, STRANGER, MEMBER));
  }

  @AfterEach
  void close() {
    channel.finishAndReleaseAll();
  }

  @Test
  void oneFrameOfAStrangerPassesHoweverItIsCut() {
    final byte[] frame = frame(STRANGER);
    for (final byte next : frame) {
      channel.writeInbound(Unpooled.wrappedBuffer(new byte[] {next}));
    }
    assertThat(channel.inboundMessages()).hasSize(frame.length);
  }

  @Test
  void aSecondFrameHasToWaitForTheProof() {
    channel.writeInbound(Unpooled.wrappedBuffer(frame(10)));
    refused(new byte[1]);
  }

  @Test
  void membersSendManyAndLargerFrames() {
    prove();
    final byte[] both = Arrays.copyOf(frame(MEMBER), 2 * (MEMBER + Long.BYTES));
    System.arraycopy(both, 0, both, MEMBER + Long.BYTES, MEMBER + Long.BYTES);
    channel.writeInbound(Unpooled.wrappedBuffer(both));
    assertThat(channel.inboundMessages()).hasSize(2);
    refused(frame(MEMBER + 1));
  }

  @Test
  void whatIsNoBufferDoesNotPass() {
    assertThatThrownBy(() -> channel.writeInbound("a word")).isInstanceOf(ClassCastException.class);
    assertThat(channel.inboundMessages()).isEmpty();
  }

  @Test
  void aFrameThatIsTooLargeIsNoticedByItsLength() {
    refused(Arrays.copyOf(frame(STRANGER + 1), Long.BYTES));
  }

  @Test
  void whatWasReadAlongWithTheProofIsNotTakenLater() {
    // As TLS hands out its records: each by itself, all of one read.
    channel.pipeline().fireChannelRead(Unpooled.wrappedBuffer(frame(10)));
    client.setClientId("member");
    refused(frame(10));
  }

  @Test
  void nothingPassesAfterARefusal() {
    refused(frame(STRANGER + 1));
    client.setClientId("member");
    final ByteBuf more = Unpooled.wrappedBuffer(frame(10));
    channel.pipeline().fireChannelReadComplete();
    channel.writeInbound(more);
    assertThat(channel.inboundMessages()).isEmpty();
    assertThat(more.refCnt()).isZero();
  }

  private void prove() {
    channel.writeInbound(Unpooled.wrappedBuffer(frame(10)));
    client.setClientId("member");
  }

  private void refused(final byte[] bytes) {
    final int before = channel.inboundMessages().size();
    final ByteBuf in = Unpooled.wrappedBuffer(bytes);
    assertThatThrownBy(() -> channel.writeInbound(in)).isInstanceOf(ForeignBytesException.class);
    assertThat(channel.inboundMessages()).hasSize(before);
    assertThat(in.refCnt()).isZero();
  }

  private static byte[] frame(final int size) {
    return ByteBuffer.allocate(Long.BYTES + size).putLong(Long.BYTES + size).array();
  }
}
