package io.zerohop.spark.control;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPromise;
import io.netty.channel.FileRegion;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.util.ReferenceCountUtil;
import io.zerohop.device.posix.Deadline;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.spark.control.ControlConnector.ForeignBytesException;
import io.zerohop.spark.log.SparkCode;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.spark.network.client.TransportClient;
import org.apache.spark.network.protocol.Message;
import org.apache.spark.network.util.TransportFrameDecoder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The connections of one channel, in or out, from when they are open until all listeners know of
 * their end. Puts the guards into each. Connections that came in and have proved nothing are
 * limited, in all and for each address. At the limit the oldest of the address that has most of
 * them makes room for a new one, so that idle connections keep nobody out. Thread safe.
 */
final class OpenChannels {
  private static final Logger LOG = LoggerFactory.getLogger(OpenChannels.class);

  /**
   * After so many addresses unauthenticated peers are only counted, so that they cannot fill the
   * log.
   */
  private static final int MAX_NAMED = 100;

  private final ControlLimits limits;
  private final Config conf;
  private final boolean answering;

  /** With the address of the other end. */
  private final Map<TransportClient, String> open = new HashMap<>();

  /**
   * Those of them that had proved nothing when they were looked at last, with their addresses and
   * in the order in which they came.
   */
  private final Map<TransportClient, String> unproven = new LinkedHashMap<>();

  /** Those that have made room, or got none: it is not known whose they are. */
  private final Set<TransportClient> turnedAway = new HashSet<>();

  private final Set<String> strangersNamed = new HashSet<>();
  private long strangers;
  private boolean closed;

  /**
   * @param conf says how long a connection may take to prove itself
   * @param answering whether the other ends ask
   */
  OpenChannels(final ControlLimits limits, final Config conf, final boolean answering) {
    this.limits = limits;
    this.conf = conf;
    this.answering = answering;
  }

  /**
   * A connection stands, and nothing has been read from it. Called on its thread; closes it if
   * there is no place for it.
   */
  void opened(final TransportClient client) {
    boolean guarded = false;
    try {
      guarded = add(client) && guard(client);
    } finally {
      if (!guarded) {
        client.getChannel().close();
      }
    }
  }

  private boolean add(final TransportClient client) {
    final String address = addressOf(client);
    TransportClient evicted = null;
    synchronized (this) {
      if (closed) {
        return false;
      }
      open.put(client, address);
      if (answering) {
        evicted = makeRoom(address);
        unproven.put(client, address);
      }
    }
    if (evicted != null) {
      closeUnproven(evicted);
    }
    return true;
  }

  private static String addressOf(final TransportClient client) {
    return client.getSocketAddress() instanceof InetSocketAddress address
        ? address.getHostString()
        : "an unknown address"; // It has gone already.
  }

  /** Returns what makes room for another one of an address; null if there is room. */
  private @Nullable TransportClient makeRoom(final String address) {
    unproven.keySet().removeIf(client -> client.getClientId() != null);
    final Map<String, Long> counts =
        unproven.values().stream().collect(Collectors.groupingBy(it -> it, Collectors.counting()));
    final String full;
    if (counts.getOrDefault(address, 0L) >= limits.unprovenOfOne()) {
      full = address;
    } else if (unproven.size() >= limits.unproven()) {
      full = Collections.max(counts.entrySet(), Map.Entry.comparingByValue()).getKey();
    } else {
      return null;
    }
    final TransportClient oldest =
        unproven.entrySet().stream()
            .filter(entry -> entry.getValue().equals(full))
            .findFirst()
            .orElseThrow()
            .getKey();
    unproven.remove(oldest);
    turnedAway.add(oldest);
    return oldest;
  }

  private boolean guard(final TransportClient client) {
    final int body = answering ? limits.questionBytes() : limits.answerBytes();
    client
        .getChannel()
        .pipeline()
        .addBefore(
            TransportFrameDecoder.HANDLER_NAME,
            "strangerGuard",
            new StrangerGuard(client, limits.strangerFrame(), body + ControlLimits.FRAME_HEADER))
        .addAfter(
            TransportFrameDecoder.HANDLER_NAME, "frameCheck", new FrameCheck(client, answering));
    if (answering) {
      client.getChannel().pipeline().addFirst("unread", new UnreadAnswers(limits.unreadBytes()));
    }
    client
        .getChannel()
        .eventLoop()
        .schedule(
            () -> closeUnproven(client), conf.connectTimeout().toMillis(), TimeUnit.MILLISECONDS);
    return true;
  }

  private static void closeUnproven(final TransportClient client) {
    if (client.getClientId() == null) {
      client.getChannel().close();
    }
  }

  /** A connection has ended, and all who wanted to know have been told. */
  void ended(final TransportClient client) {
    final String stranger = leave(client);
    if (stranger != null) {
      SparkCode.STRANGER
          .says(
              "an unauthenticated connection to this executor's control port ended (logged once for"
                  + " each address; the metric zerohop.connections.unauthenticated counts all)")
          .at("from " + stranger)
          .warn(LOG);
    }
  }

  /** The address of an unauthenticated peer that was not named before; else null. */
  private synchronized @Nullable String leave(final TransportClient client) {
    final String address = open.remove(client);
    unproven.remove(client);
    final boolean evicted = turnedAway.remove(client);
    notifyAll();
    if (!answering || closed || address == null || evicted || client.getClientId() != null) {
      return null;
    }
    strangers++;
    return strangersNamed.size() < MAX_NAMED && strangersNamed.add(address) ? address : null;
  }

  /**
   * Connections that ended before they had proved anything, since the start, without those that
   * made room for others.
   */
  synchronized long strangers() {
    return strangers;
  }

  /** Lets no more in, closes what is open and waits until all have ended, up to the limit. */
  void close() {
    for (final TransportClient client : refuse()) {
      client.getChannel().close();
    }
    awaitEnds(limits.close());
  }

  private synchronized List<TransportClient> refuse() {
    closed = true;
    return List.copyOf(open.keySet());
  }

  private synchronized void awaitEnds(final Duration limit) {
    Deadline.in(limit).await(open::isEmpty, this::wait);
  }

  /**
   * Looks at whole frames before Spark decodes them: only questions come to the end that answers,
   * and only answers to the one that asks. Spark 3.5 makes arrays as long as a length field says,
   * so those of a stranger's frame and of a failure are held against the frame first.
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
  private static final class FrameCheck extends SimpleChannelInboundHandler<ByteBuf> {
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
    public boolean acceptInboundMessage(final Object any) {
      return true; // What is no buffer fails, and does not pass unchecked.
    }

    @Override
    protected void channelRead0(final ChannelHandlerContext context, final ByteBuf frame)
        throws ForeignBytesException {
      check(frame);
      context.fireChannelRead(frame.retain());
    }

    private void check(final ByteBuf frame) throws ForeignBytesException {
      final byte type = frame.getByte(frame.readerIndex());
      final boolean expected = answering ? type == QUESTION : type == ANSWER || type == FAILURE;
      if (!expected || frame.readableBytes() < ControlLimits.FRAME_HEADER) {
        throw new ForeignBytesException(
            "a frame of type " + type + " and " + frame.readableBytes() + " bytes is none of ours");
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
          throw new ForeignBytesException("a frame ends where a length is due; is it a proof?");
        }
        at += Integer.BYTES + frame.getUnsignedInt((int) at);
      }
      if (at != frame.writerIndex()) {
        throw new ForeignBytesException("the lengths in a frame are not those of its fields");
      }
    }
  }

  /**
   * Counts what comes in before it is gathered into frames, behind decryption once there is any. A
   * stranger may send one small frame, the one that proves it, and then nothing until that has been
   * looked at: what came along with it was not encrypted, so somebody else may have put it there.
   *
   * <p>One per connection, used by its thread alone.
   */
  static final class StrangerGuard extends SimpleChannelInboundHandler<ByteBuf> {
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
    public boolean acceptInboundMessage(final Object any) {
      return true; // What is no buffer fails, and does not pass unchecked.
    }

    @Override
    protected void channelRead0(final ChannelHandlerContext context, final ByteBuf in)
        throws ForeignBytesException {
      if (!refused) {
        refused = true;
        check(in);
        refused = false;
        context.fireChannelRead(in.retain());
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

  /**
   * Limits of one connection.
   *
   * @param strangerFrame most bytes of a frame from one that has proved nothing; a refused proof is
   *     a stack trace, the rest is about a hundred bytes
   * @param questionBytes most bytes of a question
   * @param answerBytes most bytes of an answer
   * @param unreadBytes maximum bytes of answers that the other end does not read
   * @param unproven maximum number of connections that came in and have proved nothing
   * @param unprovenOfOne the same for one address
   * @param close longest wait for connections to end when the channel closes
   */
  record ControlLimits(
      int strangerFrame,
      int questionBytes,
      int answerBytes,
      long unreadBytes,
      int unproven,
      int unprovenOfOne,
      Duration close) {
    static final ControlLimits DEFAULT =
        new ControlLimits(32 << 10, 16 << 20, 64 << 20, 256L << 20, 256, 64, Duration.ofSeconds(5));

    /**
     * Of a keeper, which has little memory: its questions name at most 4,096 blocks, and it counts
     * 4 MiB of answers as under way to one reader.
     */
    static final ControlLimits KEEPER =
        new ControlLimits(32 << 10, 64 << 10, 2 << 20, 6L << 20, 256, 64, Duration.ofSeconds(5));

    /** Type, request id and length of the body: what a frame has before it. */
    static final int FRAME_HEADER = 1 + Long.BYTES + Integer.BYTES;
  }

  /**
   * Closes a connection whose other end asks and does not read: its answers would fill the heap.
   * They are counted here, before encryption, until they are in the socket. Netty's own count has
   * none of them, since Spark sends a message with a body as a file region, which counts as no
   * bytes.
   *
   * <p>One per connection, used by its thread alone.
   */
  static final class UnreadAnswers extends ChannelOutboundHandlerAdapter {

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
}
