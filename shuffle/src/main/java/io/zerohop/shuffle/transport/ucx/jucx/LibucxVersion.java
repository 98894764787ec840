package io.zerohop.shuffle.transport.ucx.jucx;

import io.zerohop.device.posix.NativeLibrary;
import io.zerohop.device.posix.UcpLibrary;
import io.zerohop.shuffle.transport.ucx.engine.OldLibucxException;
import java.util.Comparator;

/** The version of libucx that this process has loaded. Immutable. */
record LibucxVersion(int major, int minor, int patch) {

  /**
   * The first one that is used. Before it, gets of endpoints that handle errors are emulated by the
   * newer protocols, and the older ones end those below some 945 bytes in a copy by the CPU, which
   * ends the process if it may not touch the memory.
   */
  private static final LibucxVersion OLDEST = new LibucxVersion(1, 19, 0);

  private static final Comparator<LibucxVersion> ORDER =
      Comparator.comparingInt(LibucxVersion::major).thenComparingInt(LibucxVersion::minor);

  /**
   * The one that jucx has loaded, which it must have.
   *
   * @throws OldLibucxException if it is too old
   */
  static LibucxVersion loaded() {
    NativeLibrary.require();
    final int version = UcpLibrary.version();
    final LibucxVersion loaded =
        new LibucxVersion(version >> 16, version >> 8 & 0xff, version & 0xff);
    loaded.check();
    return loaded;
  }

  /**
   * Refuses one that is too old.
   *
   * @throws OldLibucxException if it is
   */
  void check() {
    if (ORDER.compare(this, OLDEST) < 0) {
      throw new OldLibucxException(
          "libucx "
              + this
              + " is older than 1.19, with which gets of GPU memory can end an executor: blocks of"
              + " other nodes are sent over Spark's connections");
    }
  }

  @Override
  public String toString() {
    return major + "." + minor + "." + patch;
  }
}
