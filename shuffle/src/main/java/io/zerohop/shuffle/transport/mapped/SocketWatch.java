package io.zerohop.shuffle.transport.mapped;

import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.FileStatus;
import io.zerohop.device.posix.PosixException;
import io.zerohop.shuffle.log.ShuffleCode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Detects that another process removed or replaced this node's socket file. Used by one thread. */
public final class SocketWatch {
  private static final Logger LOG = LoggerFactory.getLogger(SocketWatch.class);

  private final java.nio.file.Path socket;
  private final FileStatus own;
  private boolean reported;

  /**
   * @param socket the file, which is there now
   */
  public SocketWatch(final java.nio.file.Path socket) {
    this.socket = socket;
    this.own = Descriptor.statusOf(socket.toString());
  }

  /** Returns whether the file is gone, or is another one. */
  public boolean isGone() {
    try {
      return !own.sameFile(Descriptor.statusOf(socket.toString()));
    } catch (final PosixException e) {
      return e.errno() == PosixException.ENOENT || e.errno() == PosixException.ENOTDIR;
    }
  }

  /**
   * Logs that the file is gone, the first time.
   *
   * @return whether it was the first time
   */
  public boolean report() {
    if (reported) {
      return false;
    }
    reported = true;
    ShuffleCode.SOCKET_REMOVED
        .says(
            "another program removed or replaced this executor's socket; executors that are not"
                + " connected yet read its blocks staged")
        .at(socket.toString())
        .remedy("set spark.zerohop.socket.dir to a folder of this application's own")
        .warn(LOG);
    return true;
  }
}
