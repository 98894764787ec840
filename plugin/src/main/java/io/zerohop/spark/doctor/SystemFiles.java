package io.zerohop.spark.doctor;

import io.zerohop.device.posix.KernelFiles;
import java.nio.file.Path;
import java.util.List;
import java.util.OptionalLong;

/**
 * The kernel's files about this process and its machine. One that cannot be read says nothing.
 * Immutable.
 *
 * @param root where {@code proc} and {@code sys} are mounted
 */
public record SystemFiles(Path root) {
  public static final SystemFiles SYSTEM = new SystemFiles(Path.of("/"));

  /** The lines of a file; none if it cannot be read. */
  List<String> lines(final String file) {
    return KernelFiles.lines(root.resolve(file));
  }

  /** A soft limit of this process; empty if there is none, or it is not known. */
  public OptionalLong limit(final String name) {
    return lines("proc/self/limits").stream()
        .filter(line -> line.startsWith(name))
        .map(line -> line.substring(name.length()).trim().split("\\s+")[0])
        .map(text -> limited(KernelFiles.number(text, Long.MAX_VALUE)))
        .findFirst()
        .orElse(OptionalLong.empty());
  }

  /** A field of {@code /proc/self/status}; empty if it is not there. */
  String status(final String field) {
    return field("proc/self/status", field);
  }

  /** Threads of all visible processes of a user, including this one. */
  long threadsOf(final String userId) {
    return KernelFiles.names(root.resolve("proc")).stream()
        .filter(name -> Character.isDigit(name.charAt(0)))
        .map(name -> "proc/" + name + "/status")
        .filter(file -> field(file, "Uid").split("\\s+")[0].equals(userId))
        .mapToLong(file -> KernelFiles.number(field(file, "Threads"), 0))
        .sum();
  }

  /** Threads that the tightest control group leaves; empty if none limits them. */
  OptionalLong threadsLeftByGroups() {
    return limited(
        KernelFiles.minOfGroups(
            root.resolve("proc"),
            root.resolve("sys/fs/cgroup"),
            "pids",
            (group, isVersion2) -> {
              final long limit = KernelFiles.number(group.resolve("pids.max"), Long.MAX_VALUE);
              return limit == Long.MAX_VALUE
                  ? limit
                  : limit - KernelFiles.number(group.resolve("pids.current"), 0);
            }));
  }

  /** NVIDIA's display and 3D controllers on the PCI bus, whether or not there is a driver. */
  long gpusOnTheBus() {
    return KernelFiles.nvidiaGpus(root.resolve("sys/bus/pci/devices")).size();
  }

  private String field(final String file, final String name) {
    return lines(file).stream()
        .filter(line -> line.startsWith(name + ":"))
        .map(line -> line.substring(name.length() + 1).trim())
        .findFirst()
        .orElse("");
  }

  private static OptionalLong limited(final long value) {
    return value == Long.MAX_VALUE ? OptionalLong.empty() : OptionalLong.of(value);
  }
}
