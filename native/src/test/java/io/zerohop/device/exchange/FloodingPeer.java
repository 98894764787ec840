package io.zerohop.device.exchange;

import io.zerohop.device.posix.NativeLibrary;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;

/** A process that connects again and again and says nothing, until it is killed. */
public final class FloodingPeer {
  private static final int OPEN = 100;

  private FloodingPeer() {}

  /** Argument: a socket. */
  public static void main(final String[] arguments) {
    NativeLibrary.require();
    final Path socket = Path.of(arguments[0]);
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
}
