package io.zerohop.spark.control;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.netty.channel.FileRegion;
import io.netty.util.ReferenceCountUtil;
import java.io.IOException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Closes a connection whose other end asks and does not read: its answers would fill the heap. They
 * are counted here, before encryption, until they are in the socket. Netty's own count has none of
 * them, since Spark sends a message with a body as a file region, which counts as no bytes.
 *
 * <p>One per connection, used by its thread alone.
 */
final class UnreadAnswers extends ChannelOutboundHandlerAdapter {
  private static final Logger LOG = LoggerFactory.getLogger(UnreadAnswers.class);

  private final long limit;
  private long unread;
  private boolean closed;

  /**
   * @param limit maximum bytes that are not in the socket yet
   */
  UnreadAnswers(final long limit) {
    this.limit = limit;
  }

  @Override
  public void write(
      final ChannelHandlerContext context, final Object message, final ChannelPromise promise) {
    final long bytes = bytesOf(message);
    if (closed || unread + bytes > limit) {
      ReferenceCountUtil.release(message);
      promise.tryFailure(new IOException(unread + " bytes of answers were not read"));
      close(context);
      return;
    }
    unread += bytes;
    context.write(message, promise.unvoid().addListener(sent -> unread -= bytes));
  }

  private void close(final ChannelHandlerContext context) {
    if (!closed) {
      closed = true;
      LOG.info(
          "closing the connection of {}, which has not read {} bytes of answers",
          context.channel().remoteAddress(),
          unread);
      context.close();
    }
  }

  private static long bytesOf(final Object message) {
    if (message instanceof FileRegion region) {
      return region.count();
    }
    return message instanceof ByteBuf bytes ? bytes.readableBytes() : 0;
  }
}
