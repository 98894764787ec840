package io.zerohop.spark.control;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/** Stands between two ends of one connection, and can change what the server says. */
final class FlippingProxy implements AutoCloseable {
  private static final int CHUNK = 8_192;

  private final ServerSocket listener;
  private final String host;
  private final int port;
  private volatile boolean flip;
  private volatile Socket client;
  private volatile Socket server;

  FlippingProxy(final String host, final int port) throws IOException {
    this.host = host;
    this.port = port;
    listener = new ServerSocket(0, 1, InetAddress.getByName(host));
    start(this::accept);
  }

  int port() {
    return listener.getLocalPort();
  }

  /** From now on the last bit of each piece that the server sends is another. */
  void flipNext() {
    flip = true;
  }

  private void accept() throws IOException {
    client = listener.accept();
    server = new Socket(host, port);
    start(() -> copy(client, server, false));
    copy(server, client, true);
  }

  private void copy(final Socket from, final Socket to, final boolean mayFlip) throws IOException {
    try (from;
        to) {
      final InputStream in = from.getInputStream();
      final OutputStream out = to.getOutputStream();
      final byte[] chunk = new byte[CHUNK];
      for (int read = in.read(chunk); read >= 0; read = in.read(chunk)) {
        if (mayFlip && flip) {
          chunk[read - 1] ^= 1;
        }
        out.write(chunk, 0, read);
      }
    }
  }

  private interface Work {
    void run() throws IOException;
  }

  private static void start(final Work work) {
    final Thread thread =
        new Thread(
            () -> {
              try {
                work.run();
              } catch (final IOException e) {
                // One of the ends has closed.
              }
            },
            "flipping-proxy");
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public void close() throws IOException {
    listener.close();
    for (final Socket socket : new Socket[] {client, server}) {
      if (socket != null) {
        socket.close();
      }
    }
  }
}
