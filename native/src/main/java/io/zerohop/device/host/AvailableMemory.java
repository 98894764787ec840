package io.zerohop.device.host;

import io.zerohop.device.DeviceMemoryException;
import io.zerohop.device.Message;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * The memory that this process could still take: what the machine has left, or its container under
 * its limit (control groups 1 and 2), whichever is less. And what the two bounds are. Thread safe;
 * nothing is cached.
 */
public final class AvailableMemory {
  /** Never the last bytes: the kernel would rather kill a process than refuse. */
  static final long HEADROOM_BYTES = 64L << 20;

  private static final AvailableMemory SYSTEM =
      new AvailableMemory(Path.of("/proc"), Path.of("/sys/fs/cgroup"));

  /** A value of one control group, in bytes: of version 2 (second) or 1 of control groups. */
  private interface Reading {
    long of(Path folder, boolean second);
  }

  private final Path proc;
  private final Path cgroups;

  AvailableMemory(final Path proc, final Path cgroups) {
    this.proc = proc;
    this.cgroups = cgroups;
  }

  /** Bytes that could be taken now. A snapshot: others take memory too. */
  public static long bytes() {
    return SYSTEM.measure();
  }

  /** The machine's memory in bytes, used or not; {@link Long#MAX_VALUE} if it is not known. */
  public static long machineTotalBytes() {
    return SYSTEM.machineTotal();
  }

  /**
   * The tightest limit, in bytes, of the control groups that this process is in, used or not: its
   * own or that of a group above it. {@link Long#MAX_VALUE} if none is set; version 1 says so by a
   * number somewhat below, which is more than any machine has.
   */
  public static long limitBytes() {
    return SYSTEM.limit();
  }

  long machineTotal() {
    final long kibibytes = field(proc.resolve("meminfo"), "MemTotal:", Long.MAX_VALUE);
    return kibibytes == Long.MAX_VALUE ? kibibytes : kibibytes << 10;
  }

  long limit() {
    return leastOfGroups(AvailableMemory::limitOf);
  }

  long measure() {
    return Math.max(
        0, Math.min(machineBytes(), leastOfGroups(AvailableMemory::left)) - HEADROOM_BYTES);
  }

  /**
   * Refuses a step of an allocation that does not fit.
   *
   * @param stepBytes what is to be taken now
   * @param requestedBytes the whole request, for the message
   * @throws DeviceMemoryException (RETRY) if it does not fit
   */
  static void check(final long stepBytes, final long requestedBytes) {
    final long available = bytes();
    if (stepBytes > available) {
      throw new DeviceMemoryException(
          Message.of(
                  "a segment of "
                      + requestedBytes
                      + " bytes was requested, and "
                      + available
                      + " bytes of memory are left on this machine or under the container's limit")
              .at("host")
              .remedy("lower spark.zerohop.pool.size, or give the container more memory"),
          requestedBytes,
          null);
    }
  }

  private long machineBytes() {
    return field(proc.resolve("meminfo"), "MemAvailable:", Long.MAX_VALUE >> 10) << 10;
  }

  private long leastOfGroups(final Reading reading) {
    long least = Long.MAX_VALUE;
    for (final String line : lines(proc.resolve("self/cgroup"))) {
      final String[] parts = line.split(":", 3);
      if (parts.length == 3 && parts[1].isEmpty()) {
        least = Math.min(least, leastOnTheWayUp(cgroups, parts[2], true, reading));
      } else if (parts.length == 3 && List.of(parts[1].split(",")).contains("memory")) {
        least =
            Math.min(least, leastOnTheWayUp(cgroups.resolve("memory"), parts[2], false, reading));
      }
    }
    return least;
  }

  /** A group's limit binds all groups below it; inside a container only the root may be visible. */
  private static long leastOnTheWayUp(
      final Path root, final String group, final boolean second, final Reading reading) {
    Path folder = root.resolve(group.substring(1)).normalize();
    if (!folder.startsWith(root) || !Files.isDirectory(folder)) {
      folder = root;
    }
    long least = Long.MAX_VALUE;
    for (; folder != null && folder.startsWith(root); folder = folder.getParent()) {
      least = Math.min(least, reading.of(folder, second));
    }
    return least;
  }

  /** Limit less use, where file pages that the kernel can drop do not count as used. */
  private static long left(final Path folder, final boolean second) {
    final long limit = limitOf(folder, second);
    if (limit == Long.MAX_VALUE) {
      return limit;
    }
    final long used =
        number(folder.resolve(second ? "memory.current" : "memory.usage_in_bytes"), 0);
    final Path statistics = folder.resolve("memory.stat");
    final String prefix = second ? "" : "total_";
    final long droppable =
        field(statistics, prefix + "inactive_file", 0)
            + field(statistics, prefix + "active_file", 0);
    return limit - used + Math.min(used, droppable);
  }

  private static long limitOf(final Path folder, final boolean second) {
    return number(folder.resolve(second ? "memory.max" : "memory.limit_in_bytes"), Long.MAX_VALUE);
  }

  private static long number(final Path file, final long otherwise) {
    final List<String> lines = lines(file);
    return lines.isEmpty() ? otherwise : parse(lines.get(0).trim(), otherwise);
  }

  private static long field(final Path file, final String name, final long otherwise) {
    for (final String line : lines(file)) {
      final String[] words = line.trim().split("\\s+");
      if (words.length >= 2 && words[0].equals(name)) {
        return parse(words[1], otherwise);
      }
    }
    return otherwise;
  }

  private static long parse(final String text, final long otherwise) {
    try {
      return Long.parseLong(text);
    } catch (final NumberFormatException e) {
      return otherwise; // "max" among others
    }
  }

  private static List<String> lines(final Path file) {
    try {
      return Files.readAllLines(file);
    } catch (final IOException e) {
      return List.of(); // No such control group file here: it limits nothing.
    }
  }
}
