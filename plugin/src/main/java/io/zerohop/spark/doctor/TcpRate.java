package io.zerohop.spark.doctor;

import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Threads;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.time.Duration;

/** Bytes over TCP on the loopback, by one connection. */
final class TcpRate {
  private static final int CHUNK_BYTES = 1 << 18;
  private static final int CHUNKS = 1024;
  private static final int LIMIT_MILLIS = 5_000;

  private TcpRate() {}

  /** In GB/s. */
  static double measure() throws IOException {
    // Its end is waited for when both sockets are closed.
    try (Writing writing = new Writing();
        ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        Socket reader = new Socket()) {
      reader.setSoTimeout(LIMIT_MILLIS);
      server.setSoTimeout(LIMIT_MILLIS);
      reader.connect(
          new InetSocketAddress(server.getInetAddress(), server.getLocalPort()), LIMIT_MILLIS);
      try (Socket writer = server.accept()) {
        writing.start(writer);
        return read(reader.getInputStream());
      }
    }
  }

  /** A thread that writes all bytes, or ends when the socket does. */
  private static final class Writing implements AutoCloseable {
    private Thread thread;

    void start(final Socket socket) {
      thread = Threads.daemon(() -> write(socket), "doctor-tcp");
      thread.start();
    }

    @Override
    public void close() {
      if (thread != null) {
        Deadline.in(Duration.ofMillis(LIMIT_MILLIS)).await(() -> !thread.isAlive(), thread::join);
      }
    }
  }

  private static void write(final Socket socket) {
    final byte[] chunk = new byte[CHUNK_BYTES];
    try {
      for (int i = 0; i < CHUNKS; i++) {
        socket.getOutputStream().write(chunk);
      }
    } catch (final IOException e) {
      return; // The reader sees the end too early, and says so.
    }
  }

  private static double read(final InputStream in) throws IOException {
    final byte[] chunk = new byte[CHUNK_BYTES];
    final long begin = System.nanoTime();
    final long all = (long) CHUNKS * CHUNK_BYTES;
    long bytes = 0;
    while (bytes < all) {
      final int read = in.read(chunk);
      if (read < 0) {
        throw new IOException("only " + bytes + " bytes came");
      }
      bytes += read;
    }
    return (double) bytes / (System.nanoTime() - begin);
  }
}
