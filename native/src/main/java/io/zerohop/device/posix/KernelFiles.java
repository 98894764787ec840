package io.zerohop.device.posix;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/**
 * Reads the kernel's files about this process and its machine. One that cannot be read says
 * nothing: containers and virtual machines have a part of them only. Thread safe; nothing is
 * cached.
 */
public final class KernelFiles {
  private static final String NVIDIA = "0x10de";

  /** Display controllers, to which GPUs without a display belong (PCI Code and ID Assignment). */
  private static final String DISPLAY = "0x03";

  private KernelFiles() {}

  /** Returns the lines of a file; none if it cannot be read. */
  public static List<String> lines(final Path file) {
    try {
      return Files.readAllLines(file);
    } catch (final IOException e) {
      return List.of();
    }
  }

  /** Returns the text of a file, without white space at its ends; empty if it cannot be read. */
  public static String text(final Path file) {
    return String.join("\n", lines(file)).trim();
  }

  /** Returns the names in a folder, sorted; none if it cannot be read. */
  public static List<String> names(final Path folder) {
    try (Stream<Path> found = Files.list(folder)) {
      return found.map(path -> path.getFileName().toString()).sorted().toList();
    } catch (final IOException e) {
      return List.of();
    }
  }

  /**
   * Returns the number in the first line of a file; {@code otherwise} if there is none, as for
   * "max".
   */
  public static long number(final Path file, final long otherwise) {
    final List<String> lines = lines(file);
    return lines.isEmpty() ? otherwise : number(lines.get(0).trim(), otherwise);
  }

  /** Returns the number that a text is; {@code otherwise} if it is none. */
  public static long number(final String text, final long otherwise) {
    try {
      return Long.parseLong(text);
    } catch (final NumberFormatException e) {
      return otherwise;
    }
  }

  /**
   * Returns whether each thread of a process is stopped, as by SIGSTOP. The kernel stops the others
   * once one of them has the signal, which takes a while on a busy machine.
   *
   * @param proc where {@code /proc} is mounted
   */
  public static boolean isStopped(final Path proc, final long pid) {
    final Path threads = proc.resolve(pid + "/task");
    final List<String> ids = names(threads);
    return !ids.isEmpty()
        && ids.stream()
            .map(id -> text(threads.resolve(id).resolve("stat")))
            .allMatch(KernelFiles::saysStopped);
  }

  /** A name, in brackets, may have brackets and blanks in it: the state follows the last one. */
  private static boolean saysStopped(final String stat) {
    return stat.startsWith("T", stat.lastIndexOf(')') + 2);
  }

  /**
   * Returns the PCI addresses of NVIDIA's display and 3D controllers, with a driver or without.
   *
   * @param devices the folder of all PCI devices
   */
  public static List<String> nvidiaGpus(final Path devices) {
    return names(devices).stream()
        .filter(address -> text(devices.resolve(address).resolve("vendor")).equals(NVIDIA))
        .filter(address -> text(devices.resolve(address).resolve("class")).startsWith(DISPLAY))
        .toList();
  }

  /** A value of one control group. */
  @FunctionalInterface
  public interface GroupReading {
    /**
     * Reads it.
     *
     * @param isVersion2 whether the group is of version 2 of control groups, and not of version 1
     * @return {@link Long#MAX_VALUE} if the group limits nothing
     */
    long of(Path group, boolean isVersion2);
  }

  /**
   * Returns the minimum of a value over the control groups that this process is in: its own, and
   * those above it, whose limits bind it, too. {@link Long#MAX_VALUE} if none limits it.
   *
   * @param proc where {@code /proc} is mounted
   * @param groups where control groups are mounted
   * @param controller of version 1
   */
  public static long minOfGroups(
      final Path proc, final Path groups, final String controller, final GroupReading reading) {
    long min = Long.MAX_VALUE;
    for (final String line : lines(proc.resolve("self/cgroup"))) {
      final String[] parts = line.split(":", 3);
      if (parts.length == 3 && parts[1].isEmpty()) {
        min = Math.min(min, minFromGroupUp(groups, parts[2], true, reading));
      } else if (parts.length == 3 && List.of(parts[1].split(",")).contains(controller)) {
        min = Math.min(min, minFromGroupUp(groups.resolve(controller), parts[2], false, reading));
      }
    }
    return min;
  }

  /** Inside a container only the root may be visible. */
  private static long minFromGroupUp(
      final Path root, final String group, final boolean isVersion2, final GroupReading reading) {
    Path folder = root.resolve(group.substring(1)).normalize();
    if (!folder.startsWith(root) || !Files.isDirectory(folder)) {
      folder = root;
    }
    long min = Long.MAX_VALUE;
    for (; folder != null && folder.startsWith(root); folder = folder.getParent()) {
      min = Math.min(min, reading.of(folder, isVersion2));
    }
    return min;
  }
}
