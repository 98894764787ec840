package io.zerohop.shuffle.transport.mapped;

import io.zerohop.shuffle.log.ShuffleCode;
import java.nio.file.Files;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Notices that somebody else removed this node's socket file. Used by one thread. */
public final class SocketWatch {
  private static final Logger LOG = LoggerFactory.getLogger(SocketWatch.class);

  private final java.nio.file.Path socket;
  private boolean reported;

  /**
   * @param socket the file, which is there now
   */
  public SocketWatch(final java.nio.file.Path socket) {
    this.socket = socket;
  }

  /** Whether the file is gone. */
  public boolean isGone() {
    return Files.notExists(socket);
  }

  /**
   * Says that the file is gone, the first time.
   *
   * @return whether it was the first time
   */
  public boolean report() {
    if (reported) {
      return false;
    }
    reported = true;
    ShuffleCode.SOCKET_REMOVED.warn(
        LOG,
        "the socket {} of this executor was removed. Executors that are not connected yet cannot"
            + " read its memory in place; its blocks are staged for them. Something cleans that"
            + " folder: set spark.zerohop.socket.dir to one that stays",
        socket);
    return true;
  }
}
