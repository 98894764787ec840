package io.zerohop.spark.doctor;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.posix.Descriptor;
import java.nio.file.Path;

/**
 * Checks the folder by which executors of a node find each other, with two nodes. What is made in
 * it goes with the nodes, and the folder, too, unless somebody else uses it.
 */
final class SocketCheck implements Check {
  /** Enough to be more than one region. */
  private static final int BYTES = 4 << 20;

  private final Path base;

  /**
   * @param wanted null for the default
   */
  SocketCheck(final Path wanted) {
    base = wanted;
  }

  @Override
  public void run(final Notes notes) {
    try (SocketFolder folder =
        SocketFolder.open(base, NodePair.APPLICATION, NodePair.newSecret())) {
      notes.add(
          Finding.ok(
              Item.SOCKETS,
              folder.path().getParent()
                  + " can be used by this user ("
                  + Integer.toUnsignedString(Descriptor.userId())
                  + "), folder "
                  + folder.identity()
                  + " on this machine"));
    } catch (final ZerohopException e) {
      notes.add(
          Finding.fail(Item.SOCKETS, e, "set spark.zerohop.socket.dir to a folder of your own"));
      notes.add(Finding.skip(Item.PEERS, "there is no socket folder"));
      return;
    }
    peers(notes);
  }

  private void peers(final Notes notes) {
    try (NodePair nodes = new NodePair(base, BYTES)) {
      nodes.readAsPeer();
      notes.add(Finding.ok(Item.PEERS, "two nodes here authenticate and read each other in place"));
    } catch (final ZerohopException e) {
      notes.add(Finding.fail(Item.PEERS, e, "see the reasons in the executors' logs"));
    }
  }
}
