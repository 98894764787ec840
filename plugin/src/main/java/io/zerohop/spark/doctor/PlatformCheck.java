package io.zerohop.spark.doctor;

import io.zerohop.device.PeerAccess;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.host.HostDevice;
import io.zerohop.device.posix.Memory;
import io.zerohop.device.posix.NativeLibrary;
import org.agrona.concurrent.UnsafeBuffer;

/** Checks Java, the native library, and shared memory as segments use it. */
final class PlatformCheck implements Check {
  private static final int MIN_JAVA = 17;
  private static final int BYTES = 1 << 20;
  private static final int WORD = 0x5a4f;

  private final int java;
  private final String architecture;

  /** Creates the check of this JVM. */
  PlatformCheck() {
    this(Runtime.version().feature(), System.getProperty("os.arch", "?"));
  }

  PlatformCheck(final int java, final String architecture) {
    this.java = java;
    this.architecture = architecture;
  }

  @Override
  public void run(final Notes notes) {
    notes.add(java());
    NativeLibrary.require(); // Its failure is the finding: see Examination.
    notes.add(Finding.ok(Item.LIBRARY, "the native library is loaded"));
    notes.add(sharedMemory());
  }

  private Finding java() {
    final String found =
        "Java " + java + " (" + System.getProperty("java.vm.name", "?") + "), " + architecture;
    if (java < MIN_JAVA) {
      return Finding.fail(Item.JAVA, found, "run Java 17 or later on driver and executors");
    }
    return architecture.equals("amd64")
        ? Finding.ok(Item.JAVA, found)
        : Finding.warn(
            Item.JAVA,
            found + ": tested on an emulator only, and without GPUs",
            "compare some results with those of x86-64 (docs/limits.md)");
  }

  private static Finding sharedMemory() {
    try (HostDevice owner = new HostDevice();
        HostDevice peer = new HostDevice();
        Segment segment = owner.allocate(BYTES, PeerAccess.READ)) {
      new UnsafeBuffer(segment.address(), BYTES).putInt(0, WORD);
      final SegmentHandle handle = segment.export();
      final boolean readOnly = Memory.isReadOnly(handle.fd());
      try (Segment mapped = peer.map(handle, "this process", PeerAccess.READ)) {
        if (new UnsafeBuffer(mapped.address(), BYTES).getInt(0) != WORD) {
          return Finding.fail(Item.MEMFD, "a mapping of shared memory shows other bytes", "");
        }
      }
      return readOnly
          ? Finding.ok(Item.MEMFD, "shared memory is sealed, and mapped as peers map it")
          : Finding.warn(
              Item.MEMFD,
              "the kernel does not seal shared memory against writers (F_SEAL_FUTURE_WRITE)",
              "Linux 5.1 or later does; until then executors are trusted with one another's blocks");
    }
  }
}
