package io.zerohop.spark.control;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import org.apache.spark.network.client.TransportClient;

/**
 * Limits the bytes that a connection may send before they are assembled into frames, after
 * decryption if there is any. A stranger may send one small frame, the one that proves it, and then
 * nothing until that has been looked at: what came along with it was not encrypted, so somebody
 * else may have put it there.
 *
 * <p>One per connection, used by its thread alone.
 */
final class StrangerGuard extends ChannelInboundHandlerAdapter {
  private final TransportClient client;
  private final int strangerFrame;
  private final int memberFrame;
  private int headerBytes;
  private long header;
  private long remaining;
  private boolean sentFrame;
  private boolean unprovenBurst;
  private boolean refused;

  /**
   * @param client has an id from when the other end has proved itself
   * @param strangerFrame most bytes of a frame until then, without its length field
   * @param memberFrame and from then on
   */
  StrangerGuard(final TransportClient client, final int strangerFrame, final int memberFrame) {
    this.client = client;
    this.strangerFrame = strangerFrame;
    this.memberFrame = memberFrame;
  }

  @Override
  public void channelRead(final ChannelHandlerContext context, final Object message)
      throws ForeignBytesException {
    final ByteBuf in = (ByteBuf) message;
    boolean passed = false;
    try {
      if (!refused) {
        refused = true;
        check(in);
        refused = false;
        passed = true;
      }
    } finally {
      if (!passed) {
        in.release();
      }
    }
    if (passed) {
      context.fireChannelRead(in);
    }
  }

  @Override
  public void channelReadComplete(final ChannelHandlerContext context) {
    unprovenBurst = false;
    context.fireChannelReadComplete();
  }

  private void check(final ByteBuf in) throws ForeignBytesException {
    final boolean member = client.getClientId() != null;
    if (member && unprovenBurst) {
      throw new ForeignBytesException("bytes came along with a proof, before any encryption");
    }
    unprovenBurst = !member;
    int at = in.readerIndex();
    while (at < in.writerIndex()) {
      if (!member && sentFrame) {
        throw new ForeignBytesException("more than one frame came before any proof");
      }
      if (remaining == 0) {
        header(in.getByte(at), member);
        at++;
      } else {
        final long taken = Math.min(remaining, in.writerIndex() - at);
        at += (int) taken;
        remaining -= taken;
        sentFrame |= remaining == 0;
      }
    }
  }

  private void header(final byte next, final boolean member) throws ForeignBytesException {
    header = header << Byte.SIZE | Byte.toUnsignedLong(next);
    headerBytes++;
    if (headerBytes < Long.BYTES) {
      return;
    }
    // Spark's length field counts itself.
    final long size = header - Long.BYTES;
    final int most = member ? memberFrame : strangerFrame;
    if (size <= 0 || size > most) {
      throw new ForeignBytesException(
          "a frame of "
              + size
              + " bytes; at most "
              + most
              + " are taken"
              + (member ? "" : " before any proof"));
    }
    remaining = size;
    headerBytes = 0;
    header = 0;
  }
}
