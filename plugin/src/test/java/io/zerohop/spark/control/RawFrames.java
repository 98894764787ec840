package io.zerohop.spark.control;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import org.apache.spark.network.protocol.Message;

/** Frames of Spark's transport as somebody could write them who has no secret. */
final class RawFrames {
  static final byte QUESTION = Message.Type.RpcRequest.id();
  static final byte ANSWER = Message.Type.RpcResponse.id();
  static final byte FAILURE = Message.Type.RpcFailure.id();
  private static final int HEADER = Long.BYTES + 1 + Long.BYTES + Integer.BYTES;
  private static final byte PROOF = (byte) 0xfb;

  private RawFrames() {}

  static byte[] frame(final byte type, final long request, final byte[] body) {
    return ByteBuffer.allocate(HEADER + body.length)
        .putLong(HEADER + body.length)
        .put(type)
        .putLong(request)
        .putInt(body.length)
        .put(body)
        .array();
  }

  static byte[] question(final String text) {
    return frame(QUESTION, 7, text.getBytes(StandardCharsets.UTF_8));
  }

  /** A proof whose first length is a lie. */
  static byte[] proofWithLength(final int length) {
    return ByteBuffer.allocate(40).put(PROOF).putInt(length).array();
  }

  /** The frame that a peer sends first. */
  static byte[] readFrame(final Socket socket) throws IOException {
    final DataInputStream in = new DataInputStream(socket.getInputStream());
    final byte[] frame = new byte[(int) in.readLong()];
    ByteBuffer.wrap(frame).putLong(frame.length);
    in.readFully(frame, Long.BYTES, frame.length - Long.BYTES);
    return frame;
  }

  static long requestOf(final byte[] frame) {
    return ByteBuffer.wrap(frame).getLong(Long.BYTES + 1);
  }

  static Socket connect(final int port) throws IOException {
    final Socket socket = new Socket(Channels.HOST, port);
    socket.setSoTimeout((int) Channels.LIMIT.toMillis());
    socket.setTcpNoDelay(true);
    return socket;
  }

  static Socket accept(final ServerSocket server) throws IOException {
    server.setSoTimeout((int) Channels.LIMIT.toMillis());
    final Socket socket = server.accept();
    socket.setSoTimeout((int) Channels.LIMIT.toMillis());
    return socket;
  }

  /** Reads what comes until the other end closes; fails by the socket's limit if it does not. */
  static int readToEnd(final Socket socket) throws IOException {
    int count = 0;
    final byte[] bytes = new byte[4_096];
    try {
      for (int read = 0; read >= 0; read = socket.getInputStream().read(bytes)) {
        count += read;
      }
    } catch (final SocketException reset) {
      return count;
    }
    return count;
  }
}
