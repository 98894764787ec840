package io.zerohop.device.exchange;

import io.zerohop.device.posix.NativeLibrary;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;

/** Another user's process: connects and says why it was refused, or serves until it is killed. */
public final class ForeignPeer {
  private ForeignPeer() {}

  /** Arguments: connect and a socket, or serve and a base folder. */
  public static void main(final String[] arguments) throws Exception {
    final Path path = Path.of(arguments[1]);
    if (arguments[0].equals("connect")) {
      connectWithoutLooking(path);
    } else {
      serve(path);
    }
  }

  /** A link would refuse a server of another user by itself, so the frames are sent by hand. */
  private static void connectWithoutLooking(final Path socket) {
    NativeLibrary.require();
    try (RawSocket raw = RawSocket.connect(socket)) {
      raw.send(Frame.hello(Proofs.newNonce(), "foreign", "server"));
      final Frame answer = raw.receive();
      System.out.println(
          answer == null
              ? "closed"
              : answer.type() == Frame.Type.REFUSED ? answer.asReason() : answer.type());
    }
  }

  private static void serve(final Path base) throws Exception {
    try (SocketFolder folder = SocketFolder.open(base, "app");
        SegmentServer server =
            new SegmentServer(
                folder,
                "server",
                SegmentTable.SECRET,
                new SegmentTable(),
                SegmentServer.Limits.DEFAULT)) {
      server.start();
      PeerLink.connect(
              server.socket(), "self", "server", SegmentTable.SECRET, Duration.ofSeconds(60))
          .close();
      System.out.println("ready");
      new CountDownLatch(1).await();
    }
  }
}
