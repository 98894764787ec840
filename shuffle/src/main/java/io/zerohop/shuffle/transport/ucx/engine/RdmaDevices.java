package io.zerohop.shuffle.transport.ucx.engine;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** The adapters of this node that can read and write memory on their own. */
public final class RdmaDevices {
  /** Where Linux lists them, RoCE and InfiniBand alike. */
  public static final Path FOLDER = Path.of("/sys/class/infiniband");

  private static final Path PEERMEM = Path.of("/sys/module/nvidia_peermem");

  private RdmaDevices() {}

  /**
   * Returns whether the kernel lets adapters reach GPU memory by NVIDIA's module, as without
   * dma-buf.
   */
  public static boolean peermem() {
    return Files.exists(PEERMEM);
  }

  /** Returns whether there is one. Without, UCX has the owner's CPU do what gets should. */
  public static boolean any() {
    try (Stream<Path> found = Files.list(FOLDER)) {
      return found.findAny().isPresent();
    } catch (final IOException e) {
      return false;
    }
  }
}
