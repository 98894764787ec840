package io.zerohop.shuffle.transport.ucx.engine;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** The adapters of this node that can read and write memory on their own. */
public final class RdmaDevices {
  /** Where Linux lists them, RoCE and InfiniBand alike. */
  public static final Path FOLDER = Path.of("/sys/class/infiniband");

  private RdmaDevices() {}

  /** Whether there is one. Without, UCX has the owner's CPU do what gets should. */
  public static boolean any() {
    return !names(FOLDER).isEmpty();
  }

  /** All their ports, named as UCX names them: {@code mlx5_0:1}. */
  static List<String> ports() {
    return names(FOLDER).stream()
        .flatMap(
            device ->
                names(FOLDER.resolve(device).resolve("ports")).stream()
                    .map(port -> device + ":" + port))
        .toList();
  }

  private static List<String> names(final Path folder) {
    try (Stream<Path> found = Files.list(folder)) {
      return found.map(path -> path.getFileName().toString()).sorted().toList();
    } catch (final IOException e) {
      return List.of();
    }
  }
}
