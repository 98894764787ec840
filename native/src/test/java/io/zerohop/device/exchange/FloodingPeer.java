package io.zerohop.device.exchange;

import io.zerohop.device.posix.NativeLibrary;
import java.io.ByteArrayOutputStream;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * A process that connects again and again and says nothing, or that asks again and again, until it
 * is killed.
 */
public final class FloodingPeer {
  private static final int OPEN = 100;
  private static final int REQUESTS = 500;

  private FloodingPeer() {}

  /** Arguments: a socket, and the id of a segment if it is to ask for that. */
  public static void main(final String[] arguments) {
    NativeLibrary.require();
    final Path socket = Path.of(arguments[0]);
    if (arguments.length > 1) {
      ask(socket, Long.parseLong(arguments[1]));
    } else {
      connect(socket);
    }
  }

  private static void connect(final Path socket) {
    final Deque<RawSocket> open = new ArrayDeque<>();
    for (long count = 1; count < Long.MAX_VALUE; count++) {
      open.add(RawSocket.connect(socket));
      if (open.size() > OPEN) {
        open.remove().close();
      }
      if (count == OPEN) {
        System.out.println("flooding");
      }
    }
  }

  /** Waits for no answer before it asks again. */
  private static void ask(final Path socket, final long segmentId) {
    try (RawSocket raw = RawSocket.connect(socket).shakeHands("greedy", "server")) {
      final Thread reading = new Thread(raw::discardAll);
      reading.setDaemon(true);
      reading.start();
      for (long count = 1; count < Long.MAX_VALUE; count++) {
        final ByteArrayOutputStream requests = new ByteArrayOutputStream();
        for (int i = 0; i < REQUESTS; i++) {
          requests.writeBytes(raw.sealed(Frame.ofId(Frame.Type.FETCH, segmentId)));
        }
        raw.sendAll(requests.toByteArray());
        if (count == 1) {
          System.out.println("flooding");
        }
      }
    }
  }
}
