package io.zerohop.spark.doctor;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.OptionalLong;
import java.util.stream.Stream;

/**
 * The kernel's files about this process and its machine. One that cannot be read says nothing.
 * Immutable.
 *
 * @param root where {@code proc} and {@code sys} are mounted
 */
public record SystemFiles(Path root) {
  public static final SystemFiles SYSTEM = new SystemFiles(Path.of("/"));

  private static final String NVIDIA = "0x10de";
  private static final String DISPLAY = "0x03";

  /** The lines of a file; none if it cannot be read. */
  public List<String> lines(final String file) {
    try {
      return Files.readAllLines(root.resolve(file));
    } catch (final IOException e) {
      return List.of();
    }
  }

  /** A soft limit of this process; empty if there is none, or it is not known. */
  public OptionalLong limit(final String name) {
    return lines("proc/self/limits").stream()
        .filter(line -> line.startsWith(name))
        .map(line -> line.substring(name.length()).trim().split("\\s+")[0])
        .map(SystemFiles::number)
        .findFirst()
        .orElse(OptionalLong.empty());
  }

  /** A field of {@code /proc/self/status}; empty if it is not there. */
  String status(final String field) {
    return field("proc/self/status", field);
  }

  /** Threads of all visible processes of a user, including this one. */
  long threadsOf(final String userId) {
    return names("proc").stream()
        .filter(name -> Character.isDigit(name.charAt(0)))
        .map(name -> "proc/" + name + "/status")
        .filter(file -> field(file, "Uid").split("\\s+")[0].equals(userId))
        .mapToLong(file -> number(field(file, "Threads")).orElse(0))
        .sum();
  }

  /** Threads that the tightest control group leaves; empty if none limits them. */
  OptionalLong threadsLeftByGroups() {
    long least = Long.MAX_VALUE;
    for (final String line : lines("proc/self/cgroup")) {
      final String[] parts = line.split(":", 3);
      if (parts.length == 3 && parts[1].isEmpty()) {
        least = Math.min(least, threadsLeft("sys/fs/cgroup", parts[2]));
      } else if (parts.length == 3 && List.of(parts[1].split(",")).contains("pids")) {
        least = Math.min(least, threadsLeft("sys/fs/cgroup/pids", parts[2]));
      }
    }
    return least == Long.MAX_VALUE ? OptionalLong.empty() : OptionalLong.of(least);
  }

  /** A group's limit binds all groups below it; inside a container only the root may be visible. */
  private long threadsLeft(final String mount, final String group) {
    final Path top = root.resolve(mount);
    Path folder = top.resolve(group.substring(1)).normalize();
    if (!folder.startsWith(top) || !Files.isDirectory(folder)) {
      folder = top;
    }
    long least = Long.MAX_VALUE;
    for (Path each = folder; each != null && each.startsWith(top); each = each.getParent()) {
      final String at = root.relativize(each).toString();
      final OptionalLong limit = first(at + "/pids.max");
      if (limit.isPresent()) {
        least = Math.min(least, limit.getAsLong() - first(at + "/pids.current").orElse(0));
      }
    }
    return least;
  }

  /** NVIDIA's display and 3D controllers on the PCI bus, whether or not there is a driver. */
  long gpusOnTheBus() {
    final String devices = "sys/bus/pci/devices";
    return names(devices).stream()
        .filter(name -> lines(devices + "/" + name + "/vendor").contains(NVIDIA))
        .filter(
            name ->
                lines(devices + "/" + name + "/class").stream()
                    .anyMatch(text -> text.startsWith(DISPLAY)))
        .count();
  }

  private String field(final String file, final String name) {
    return lines(file).stream()
        .filter(line -> line.startsWith(name + ":"))
        .map(line -> line.substring(name.length() + 1).trim())
        .findFirst()
        .orElse("");
  }

  private OptionalLong first(final String file) {
    final List<String> lines = lines(file);
    return lines.isEmpty() ? OptionalLong.empty() : number(lines.get(0).trim());
  }

  /** The names in a folder, sorted; none if it cannot be read. */
  public List<String> names(final String folder) {
    try (Stream<Path> found = Files.list(root.resolve(folder))) {
      return found.map(path -> path.getFileName().toString()).sorted().toList();
    } catch (final IOException e) {
      return List.of();
    }
  }

  /** Empty for "max" and "unlimited". */
  private static OptionalLong number(final String text) {
    try {
      return OptionalLong.of(Long.parseLong(text));
    } catch (final NumberFormatException e) {
      return OptionalLong.empty();
    }
  }
}
