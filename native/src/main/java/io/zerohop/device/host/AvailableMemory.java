package io.zerohop.device.host;

import io.zerohop.device.DeviceMemoryException;
import io.zerohop.device.Message;
import io.zerohop.device.posix.KernelFiles;
import io.zerohop.device.posix.KernelFiles.GroupReading;
import java.nio.file.Path;

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
    return minOfGroups(AvailableMemory::limitOf);
  }

  long measure() {
    return Math.max(
        0, Math.min(machineBytes(), minOfGroups(AvailableMemory::left)) - HEADROOM_BYTES);
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

  private long minOfGroups(final GroupReading reading) {
    return KernelFiles.minOfGroups(proc, cgroups, "memory", reading);
  }

  /** Limit less use, where file pages that the kernel can drop do not count as used. */
  private static long left(final Path folder, final boolean isVersion2) {
    final long limit = limitOf(folder, isVersion2);
    if (limit == Long.MAX_VALUE) {
      return limit;
    }
    final long used =
        KernelFiles.number(
            folder.resolve(isVersion2 ? "memory.current" : "memory.usage_in_bytes"), 0);
    final Path statistics = folder.resolve("memory.stat");
    final String prefix = isVersion2 ? "" : "total_";
    final long droppable =
        field(statistics, prefix + "inactive_file", 0)
            + field(statistics, prefix + "active_file", 0);
    return limit - used + Math.min(used, droppable);
  }

  private static long limitOf(final Path folder, final boolean isVersion2) {
    return KernelFiles.number(
        folder.resolve(isVersion2 ? "memory.max" : "memory.limit_in_bytes"), Long.MAX_VALUE);
  }

  private static long field(final Path file, final String name, final long otherwise) {
    for (final String line : KernelFiles.lines(file)) {
      final String[] words = line.trim().split("\\s+");
      if (words.length >= 2 && words[0].equals(name)) {
        return KernelFiles.number(words[1], otherwise);
      }
    }
    return otherwise;
  }
}
