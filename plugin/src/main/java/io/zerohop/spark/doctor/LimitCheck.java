package io.zerohop.spark.doctor;

import io.zerohop.device.host.AvailableMemory;
import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices.RdmaDevices;
import io.zerohop.spark.doctor.Examination.Check;
import io.zerohop.spark.doctor.Examination.Notes;
import io.zerohop.spark.doctor.Finding.Verdict;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.OptionalLong;

/**
 * Checks the limits of the kernel and the container on this process.
 *
 * @param adapters whether there is an RDMA adapter
 * @param ucx whether executors would use UCX
 */
record LimitCheck(SystemFiles files, Room room, boolean adapters, boolean ucx) implements Check {
  private static final long KIB = 1L << 10;
  private static final long MIB = 1L << 20;
  private static final long MIN_LOCKED = 1024 * MIB;
  private static final long FEW_FILES = 4096;
  private static final long FEW_THREADS = 512;
  private static final long NO_THREADS = 64;
  private static final long LITTLE_MEMORY = 1024 * MIB;
  private static final long NO_MEMORY = 64 * MIB;
  private static final long SMALL_SHM = 64 * MIB;
  private static final int CAP_IPC_LOCK = 14;

  /** Memory that is still available, in bytes. */
  interface Room {
    long memory();

    /** Returns the room of a file system; throws if it is missing. */
    long in(Path folder) throws IOException;
  }

  /** The check of this machine. */
  LimitCheck(final boolean ucx) {
    this(SystemFiles.SYSTEM, new SystemRoom(), RdmaDevices.any(), ucx);
  }

  @Override
  public void run(final Notes notes) {
    notes.add(lockedMemory());
    notes.add(openFiles());
    notes.add(threads());
    notes.add(memory());
    notes.add(shm());
  }

  private Finding lockedMemory() {
    final OptionalLong limit = files.limit("Max locked memory");
    final String remedy =
        "raise 'ulimit -l' (limits.conf, LimitMEMLOCK of the service, or --ulimit memlock of the"
            + " container) to the size of the pools, or to unlimited";
    if (limit.isEmpty()) {
      return Item.MEMLOCK.ok("locked memory is not limited");
    }
    final String found = "locked memory is limited to " + limit.getAsLong() / KIB + " KiB";
    if (mayLock()) {
      return Item.MEMLOCK.ok(found + ", which CAP_IPC_LOCK overrides");
    }
    if (!adapters || limit.getAsLong() >= MIN_LOCKED) {
      return Item.MEMLOCK.ok(
          found + (adapters ? "" : "; only an RDMA adapter would count against it"));
    }
    return Item.MEMLOCK.found(
        Verdict.WARN.where(ucx),
        found + ": segments that cannot be registered with the adapter are sent",
        remedy);
  }

  private boolean mayLock() {
    final String effective = files.status("CapEff");
    return !effective.isEmpty() && new BigInteger(effective, 16).testBit(CAP_IPC_LOCK);
  }

  private Finding openFiles() {
    final OptionalLong limit = files.limit("Max open files");
    if (limit.isEmpty() || limit.getAsLong() >= FEW_FILES) {
      return Item.FILES.ok(
          limit.isEmpty()
              ? "open files are not limited"
              : "up to " + limit.getAsLong() + " open files");
    }
    return Item.FILES.warn(
        "only "
            + limit.getAsLong()
            + " open files: sockets and segments of peers take some hundred each",
        "raise 'ulimit -n' to 65536");
  }

  private Finding threads() {
    final OptionalLong ofUser = threadsLeftOfUser();
    final OptionalLong ofGroups = files.threadsLeftByGroups();
    final long left = Math.min(ofUser.orElse(Long.MAX_VALUE), ofGroups.orElse(Long.MAX_VALUE));
    if (left == Long.MAX_VALUE) {
      return Item.PROCESSES.ok("threads are not limited");
    }
    final boolean byGroup = ofGroups.isPresent() && ofGroups.getAsLong() == left;
    final String found =
        left + " threads are left " + (byGroup ? "by pids.max of the container" : "by ulimit -u");
    final String remedy =
        byGroup
            ? "raise pids.max of the container (--pids-limit; podPidsLimit of the kubelet)"
            : "raise 'ulimit -u', which counts the threads of all processes of this user";
    if (left < NO_THREADS) {
      return Item.PROCESSES.fail(found + ": executors will not start", remedy);
    }
    return left < FEW_THREADS
        ? Item.PROCESSES.warn(found + ": an executor has some hundred", remedy)
        : Item.PROCESSES.ok(found);
  }

  /** Root's are not limited, whatever ulimit says. */
  private OptionalLong threadsLeftOfUser() {
    final String userId = files.status("Uid").split("\\s+")[0];
    final OptionalLong limit = files.limit("Max processes");
    return limit.isEmpty() || userId.equals("0")
        ? OptionalLong.empty()
        : OptionalLong.of(limit.getAsLong() - files.threadsOf(userId));
  }

  private Finding memory() {
    final long left = room.memory();
    final String found =
        left / MIB + " MiB can be taken now, on this machine or under the container's limit";
    final String remedy =
        "give the container more memory, or end what else takes it; blocks that find no room go to"
            + " files";
    if (left < NO_MEMORY) {
      return Item.MEMORY.fail(found, remedy);
    }
    return left < LITTLE_MEMORY ? Item.MEMORY.warn(found, remedy) : Item.MEMORY.ok(found);
  }

  private Finding shm() {
    final Path folder = Path.of("/dev/shm");
    final long free;
    try {
      free = room.in(folder);
    } catch (final IOException e) {
      return Item.SHM.found(
          Verdict.WARN.where(ucx),
          "there is no " + folder + " (" + e + ")",
          "mount a tmpfs there for UCX");
    }
    final String remedy =
        "remove what lies in it, or make it larger: mount -o remount,size=1g /dev/shm; --shm-size"
            + " of the container; an emptyDir of medium Memory in a pod";
    if (free < MIB) {
      return Item.SHM.found(
          Verdict.FAIL.where(ucx),
          folder + " is full: UCX cannot make queues between processes there",
          remedy);
    }
    final String found = free / MIB + " MiB are free in " + folder;
    return free < SMALL_SHM
        ? Item.SHM.found(
            Verdict.WARN.where(ucx), found + "; UCX takes some MiB for each peer", remedy)
        : Item.SHM.ok(found + " (for UCX; blocks do not lie there)");
  }

  /** The product's own measure, and the file system's. */
  private static final class SystemRoom implements Room {
    @Override
    public long memory() {
      return AvailableMemory.bytes();
    }

    @Override
    public long in(final Path folder) throws IOException {
      return Files.getFileStore(folder).getUsableSpace();
    }
  }
}
