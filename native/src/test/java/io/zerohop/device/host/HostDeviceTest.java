package io.zerohop.device.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.CopyStream;
import io.zerohop.device.Device;
import io.zerohop.device.DeviceContractTest;
import io.zerohop.device.DeviceUnderTest;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.Signal;
import io.zerohop.device.WaitException;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.FdHandle;
import io.zerohop.device.posix.Memory;
import io.zerohop.device.posix.PosixException;
import io.zerohop.device.posix.Sockets;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The contract on host memory, and what holds for host memory alone. */
final class HostDeviceTest extends DeviceContractTest {
  private static final int PAGE = 4096 * 16;

  @Override
  protected DeviceUnderTest subject() {
    return new HostUnderTest();
  }

  @Test
  void segmentsAreSealedForGood() {
    try (Segment segment = device.allocate(PAGE);
        SegmentHandle handle = segment.export()) {
      assertThat(Memory.isSealed(handle.fd())).isTrue();
      assertThat(Descriptor.status(handle.fd()).bytes()).isEqualTo(segment.bytes());
      for (final long bytes : new long[] {segment.bytes() / 2, segment.bytes() * 2}) {
        assertThatThrownBy(() -> Memory.resize(handle.fd(), bytes))
            .isInstanceOf(PosixException.class)
            .hasMessageContaining("ftruncate");
      }
    }
  }

  /** What a core dump or an executable mapping could make of other executors' blocks. */
  @Test
  void segmentsAreNeitherDumpedNorExecuted() throws IOException {
    for (final PeerAccess access : PeerAccess.values()) {
      try (Segment segment = device.allocate(PAGE, access);
          SegmentHandle handle = segment.export();
          Segment mapped = device.map(segment.export(), "a peer", access)) {
        assertThat(vmFlags(segment.address())).contains("dd");
        assertThat(vmFlags(mapped.address())).contains("dd");
        if (Files.exists(Path.of("/proc/sys/vm/memfd_noexec"))) { // Linux 6.3
          assertThat(Descriptor.status(handle.fd()).mode() & 0111).isZero();
        }
      }
    }
    try (HostBuffer buffer = device.hostBuffer(PAGE)) {
      assertThat(vmFlags(buffer.address())).contains("dd");
    }
  }

  /** The flags of the mapping that begins at an address, as /proc/self/smaps lists them. */
  private static List<String> vmFlags(final long address) throws IOException {
    final Iterator<String> lines = Files.readAllLines(Path.of("/proc/self/smaps")).iterator();
    while (lines.hasNext()) {
      if (lines.next().startsWith(Long.toHexString(address) + "-")) {
        String line;
        do {
          line = lines.next();
        } while (!line.startsWith("VmFlags:"));
        return List.of(line.substring("VmFlags:".length()).trim().split(" "));
      }
    }
    throw new AssertionError("nothing is mapped at " + Long.toHexString(address));
  }

  @Test
  void anUnsealedDescriptorIsRefused() {
    final int fd = Memory.create("zerohop-test");
    Memory.resize(fd, PAGE);
    assertRefused(new FdHandle(fd, PAGE), "not sealed");
  }

  @Test
  void aSegmentOfAnotherSizeThanStatedIsRefused() {
    for (final long stated : new long[] {PAGE / 2, PAGE * 2L, PAGE + 1, 0, -PAGE, 1L << 40}) {
      assertRefused(new FdHandle(sealed(), stated), "bytes");
    }
  }

  @Test
  void aDescriptorThatIsNoMemoryIsRefused() {
    assertRefused(new FdHandle(Sockets.newWakeup(), PAGE), "not sealed");
    assertRefused(new FdHandle(Descriptor.openFolder("/tmp"), PAGE), "not sealed");
  }

  @Test
  void handlesOfOtherKindsAreRefused() {
    assertRefused(new ForeignHandle(), "FABRIC");
  }

  @Test
  void copiesRunOnTheSubmittingThreadUnlessSomethingWaits() {
    try (Segment segment = device.allocate(PAGE);
        CopyStream stream = device.openStream("lazy")) {
      final Signal signal = device.signal(segment, 0);
      stream.raise(signal, 1);
      assertThat(signal.epoch()).isEqualTo(1);
      stream.await(signal, 1, LIMIT);
      assertThat(threads()).doesNotContain("zerohop-copy-lazy");
      stream.await(signal, 2, LIMIT);
      assertThat(threads()).contains("zerohop-copy-lazy");
      signal.raise(2);
      stream.synchronize(LIMIT);
    }
  }

  @Test
  void anInterruptEndsAWait() {
    try (Segment segment = device.allocate(PAGE)) {
      final Signal signal = device.signal(segment, 0);
      Thread.currentThread().interrupt();
      assertThatThrownBy(() -> signal.await(1, LIMIT, () -> false))
          .isInstanceOfSatisfying(
              WaitException.class,
              e -> assertThat(e.reason()).isEqualTo(WaitException.Reason.CANCELLED));
      assertThat(Thread.interrupted()).isTrue();
    }
  }

  @Test
  void aSignalOfAClosedSegmentIsAnErrorAndNoCrash() {
    final Segment segment = device.allocate(PAGE);
    final Signal signal = device.signal(segment, 0);
    segment.close();
    assertThatThrownBy(signal::epoch).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> signal.raise(1)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> signal.await(1, Duration.ZERO, () -> false))
        .isInstanceOf(IllegalStateException.class);
  }

  @Test
  void whatPeersMayOnlyReadCannotBeMappedForWriting() {
    try (Segment segment = device.allocate(PAGE, PeerAccess.READ);
        SegmentHandle handle = segment.export()) {
      assertThat(handle.access()).isEqualTo(PeerAccess.READ);
      assertThat(Memory.isSealed(handle.fd())).isTrue();
      assertRefused(segment.export(), "mmap");
      try (Segment mapped = device.map(segment.export(), "a peer", PeerAccess.READ)) {
        final Signal signal = device.signal(mapped, 0);
        assertThatThrownBy(() -> signal.raise(1)).isInstanceOf(IllegalStateException.class);
        assertThatThrownBy(() -> signal.abort(1)).isInstanceOf(IllegalStateException.class);
        device.signal(segment, 0).raise(7);
        signal.await(7, LIMIT, () -> false);
        assertThatThrownBy(() -> signal.await(8, Duration.ofMillis(20), () -> false))
            .as("sleeping on such memory works, too")
            .isInstanceOfSatisfying(
                WaitException.class,
                e -> assertThat(e.reason()).isEqualTo(WaitException.Reason.TIMEOUT));
      }
    }
  }

  @Test
  void availableMemoryIsThatOfThisMachine() {
    assertThat(AvailableMemory.bytes()).isPositive().isLessThan(1L << 50);
  }

  @Test
  void aClosedDeviceGivesNothing() {
    final Device closed = subject.open();
    closed.close();
    assertThatThrownBy(() -> closed.allocate(1)).isInstanceOf(IllegalStateException.class);
    final FdHandle handle = new FdHandle(sealed(), PAGE);
    assertThatThrownBy(() -> closed.map(handle, "a peer"))
        .isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(handle::fd).isInstanceOf(IllegalStateException.class);
  }

  private static int sealed() {
    final int fd = Memory.create("zerohop-test");
    Memory.resize(fd, PAGE);
    Memory.seal(fd, false);
    return fd;
  }

  /** Refused, typed, and the descriptor closed: the leak check would find it. */
  private void assertRefused(final SegmentHandle handle, final String reason) {
    assertThatThrownBy(() -> device.map(handle, "a peer"))
        .isInstanceOfSatisfying(
            ZerohopException.class,
            e -> assertThat(e.category()).isEqualTo(ZerohopException.Category.FALLBACK))
        .hasMessageContaining("refused")
        .hasMessageContaining(reason);
    assertThatThrownBy(handle::fd).isInstanceOf(IllegalStateException.class);
  }

  private static List<String> threads() {
    return Thread.getAllStackTraces().keySet().stream().map(Thread::getName).toList();
  }

  private static final class ForeignHandle implements SegmentHandle {
    @Override
    public Kind kind() {
      return Kind.FABRIC;
    }

    @Override
    public long bytes() {
      return PAGE;
    }

    @Override
    public int fd() {
      throw new IllegalStateException("no descriptor");
    }

    @Override
    public byte[] opaque() {
      return new byte[64];
    }

    @Override
    public void close() {
      // Nothing is owned.
    }
  }
}
