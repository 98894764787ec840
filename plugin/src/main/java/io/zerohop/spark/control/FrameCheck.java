package io.zerohop.spark.control;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.util.ReferenceCountUtil;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.protocol.Message;

/**
 * Checks whole frames before Spark decodes them: the answering end accepts only requests, and the
 * requesting end only responses. Spark 3.5 makes arrays as long as a length field says, so those of
 * a stranger's frame and of a failure are held against the frame first.
 *
 * <pre>
 *   0      1            9             13
 *   | type | request id | body length | body ...         questions and answers
 *   | type | request id | text length | text ...         failures
 *
 *   | tag | length | user | length | salt | length | ciphertext |     body of a proof
 * </pre>
 *
 * <p>One per connection, used by its thread alone.
 */
final class FrameCheck extends ChannelInboundHandlerAdapter {
  private static final byte QUESTION = Message.Type.RpcRequest.id();
  private static final byte ANSWER = Message.Type.RpcResponse.id();
  private static final byte FAILURE = Message.Type.RpcFailure.id();
  private static final int PROOF_FIELDS = 3;

  private final TransportClient client;
  private final boolean answering;

  /**
   * @param client has an id from when the other end has proved itself
   * @param answering whether this is the end that answers
   */
  FrameCheck(final TransportClient client, final boolean answering) {
    this.client = client;
    this.answering = answering;
  }

  @Override
  public void channelRead(final ChannelHandlerContext context, final Object message)
      throws ForeignBytesException {
    boolean passed = false;
    try {
      check((ByteBuf) message);
      passed = true;
    } finally {
      if (!passed) {
        ReferenceCountUtil.release(message);
      }
    }
    context.fireChannelRead(message);
  }

  private void check(final ByteBuf frame) throws ForeignBytesException {
    final byte type = frame.getByte(frame.readerIndex());
    final boolean expected = answering ? type == QUESTION : type == ANSWER || type == FAILURE;
    if (!expected || frame.readableBytes() < ControlLimits.FRAME_HEADER) {
      throw new ForeignBytesException(
          "a frame of type "
              + type
              + " and "
              + frame.readableBytes()
              + " bytes is not of this protocol");
    }
    if (type == FAILURE) {
      final int text = ControlLimits.FRAME_HEADER - Integer.BYTES;
      checkFields(frame, frame.readerIndex() + text, 1);
    } else if (client.getClientId() == null) {
      checkFields(frame, frame.readerIndex() + ControlLimits.FRAME_HEADER + 1, PROOF_FIELDS);
    }
  }

  /** Fields with a length before each must fill the frame. */
  private static void checkFields(final ByteBuf frame, final int from, final int count)
      throws ForeignBytesException {
    long at = from;
    for (int i = 0; i < count; i++) {
      if (at + Integer.BYTES > frame.writerIndex()) {
        throw new ForeignBytesException("a frame ends before a length; it may be a proof");
      }
      at += Integer.BYTES + frame.getUnsignedInt((int) at);
    }
    if (at != frame.writerIndex()) {
      throw new ForeignBytesException("the lengths in a frame are not those of its fields");
    }
  }
}
