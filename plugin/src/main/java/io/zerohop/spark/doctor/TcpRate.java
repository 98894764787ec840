package io.zerohop.spark.doctor;

import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Threads;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.time.Duration;

/**
 * Measures TCP on the loopback with one connection. The socket connects to its own address, so that
 * no port listens.
 */
final class TcpRate {
  private static final int CHUNK_BYTES = 1 << 18;
  private static final int CHUNKS = 1024;
  private static final int LIMIT_MILLIS = 5_000;

  private TcpRate() {}

  /** In GB/s. */
  static double measure() throws IOException {
    // Its end is waited for when the socket is closed.
    try (Writing writing = new Writing();
        Socket self = new Socket()) {
      self.setSoTimeout(LIMIT_MILLIS);
      self.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
      self.connect(self.getLocalSocketAddress(), LIMIT_MILLIS);
      writing.start(self);
      return read(self.getInputStream());
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
