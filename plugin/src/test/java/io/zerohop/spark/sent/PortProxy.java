package io.zerohop.spark.sent;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * Stands before one port, for any number of connections, and does to what is sent there what a
 * network may do. Thread safe; owns its threads and sockets.
 */
final class PortProxy implements AutoCloseable {
  private static final int CHUNK = 32 << 10;

  /** Pieces that are as long are bytes of blocks: of words there are fewer. */
  private static final int LONG = 16 << 10;

  private static final long NEVER = Long.MAX_VALUE;
  private static final long LOOK_NANOS = 1_000_000;

  private final ServerSocket listener;
  private final int port;
  private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
  private final AtomicInteger flips = new AtomicInteger();
  private final AtomicLong untilReset = new AtomicLong(NEVER);
  private final AtomicInteger closedAtOnce = new AtomicInteger();
  private final List<ByteArrayOutputStream> recordings = new CopyOnWriteArrayList<>();
  private volatile Ear ear;
  private volatile boolean records;
  private volatile boolean closes;
  private volatile boolean paused;

  /**
   * Hears of uploads to the port, where nothing is encrypted. Called by a thread of the upload's
   * connection, which is held up meanwhile.
   */
  interface Ear {
    /** Its header has passed, and nothing of its body. */
    default void begins(final UploadId id) throws IOException {}

    /** The last byte of it has passed. */
    default void ended(final UploadId id) throws IOException {}
  }

  PortProxy(final int port) throws IOException {
    this.port = port;
    listener = new ServerSocket(0, 50, InetAddress.getByName(BlockPort.HOST));
    start(this::accept);
  }

  int port() {
    return listener.getLocalPort();
  }

  /** In so many of the next pieces of blocks one bit is changed. */
  void flip(final int pieces) {
    flips.set(pieces);
  }

  /** All connections are reset when so many more bytes of blocks have passed. */
  void resetAfter(final long bytes) {
    untilReset.set(bytes);
  }

  /** Whether a reset has happened since it was wanted. */
  boolean hasReset() {
    return untilReset.get() == NEVER;
  }

  /** From now on nothing passes, or everything does. */
  void pause(final boolean on) {
    paused = on;
  }

  /** All connections are reset now, and each that is made from now on is closed at once. */
  void closeAll() throws IOException {
    closes = true;
    reset();
  }

  /** From now on connections are no longer closed. */
  void open() {
    closes = false;
  }

  /** Connections that were closed at once. */
  int closedAtOnce() {
    return closedAtOnce.get();
  }

  /** All connections are reset now, and nobody listens any more. */
  void refuse() throws IOException {
    listener.close();
    reset();
  }

  /** Listens to connections that are made from now on, and to those that others listened to. */
  void hear(final Ear listening) {
    ear = listening;
  }

  /** What passes by connections that are made from now on is kept, in both directions. */
  void record() {
    records = true;
  }

  /** Whether some connection has carried these bytes since, one behind the other. */
  boolean hasCarried(final String text) {
    return recordings.stream()
        .anyMatch(bytes -> bytes.toString(StandardCharsets.ISO_8859_1).contains(text));
  }

  /** Bytes that were carried since. */
  long carried() {
    return recordings.stream().mapToLong(ByteArrayOutputStream::size).sum();
  }

  private void reset() throws IOException {
    for (final Socket each : sockets) {
      try {
        each.setSoLinger(true, 0);
      } catch (final SocketException e) {
        continue; // It is closed.
      }
      each.close();
    }
  }

  private void accept() throws IOException {
    while (!listener.isClosed()) {
      final Socket client = listener.accept();
      if (closes) {
        client.close();
        closedAtOnce.incrementAndGet();
        continue;
      }
      final Socket server = new Socket(BlockPort.HOST, port);
      sockets.add(client);
      sockets.add(server);
      if (closes || listener.isClosed()) {
        reset(); // Who did it may have passed these.
      }
      start(() -> copy(client, server, true));
      start(() -> copy(server, client, false));
    }
  }

  private void copy(final Socket from, final Socket to, final boolean uploads) throws IOException {
    final boolean isHeard = uploads && ear != null;
    final OutputStream tape = tape();
    final UploadFrames frames = new UploadFrames();
    try (from;
        to) {
      final InputStream in = from.getInputStream();
      final OutputStream out = to.getOutputStream();
      final byte[] chunk = new byte[CHUNK];
      for (int read = in.read(chunk); read >= 0; read = in.read(chunk)) {
        awaitPassage();
        if (uploads && read >= LONG) {
          change(chunk, read);
        }
        tape.write(chunk, 0, read);
        if (isHeard) {
          writeHeard(chunk, read, out, frames);
        } else {
          out.write(chunk, 0, read);
        }
      }
    }
  }

  private OutputStream tape() {
    if (!records) {
      return OutputStream.nullOutputStream();
    }
    final ByteArrayOutputStream tape = new ByteArrayOutputStream();
    recordings.add(tape);
    return tape;
  }

  private void awaitPassage() {
    while (paused && !listener.isClosed()) {
      LockSupport.parkNanos(LOOK_NANOS);
    }
  }

  private void writeHeard(
      final byte[] chunk, final int read, final OutputStream out, final UploadFrames frames)
      throws IOException {
    for (int at = 0; at < read; ) {
      final int end = frames.take(chunk, at, read);
      out.write(chunk, at, end - at);
      at = end;
      if (frames.begun() != null) {
        ear.begins(frames.begun());
      }
      if (frames.ended() != null) {
        ear.ended(frames.ended());
      }
      awaitPassage();
    }
  }

  private void change(final byte[] chunk, final int read) throws IOException {
    if (!hasHeader(chunk, read) && flips.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
      chunk[read / 2] ^= 1;
    }
    final long left =
        untilReset.updateAndGet(before -> before == NEVER ? NEVER : Math.max(0, before - read));
    if (left == 0) {
      untilReset.set(NEVER);
      reset();
    }
  }

  /** A frame that does not begin where it should is another thing than a block that is damaged. */
  private static boolean hasHeader(final byte[] chunk, final int read) {
    return new String(chunk, 0, read, StandardCharsets.ISO_8859_1).contains("shuffle_");
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
            "port-proxy");
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public void close() throws IOException {
    listener.close();
    for (final Socket each : sockets) {
      each.close();
    }
  }
}
