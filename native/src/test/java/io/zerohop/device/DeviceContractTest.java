package io.zerohop.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.exchange.SegmentServer;
import io.zerohop.device.exchange.SegmentTable;
import io.zerohop.device.exchange.SocketFolder;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * What every {@link Device} must do, whatever its memory is. Memory is only touched by way of
 * {@link DeviceUnderTest}.
 */
public abstract class DeviceContractTest extends ColumnContract {
  @Test
  void allocatesWholeGranulesOfZeroes() {
    try (Segment segment = device.allocate(1)) {
      assertThat(segment.bytes()).isEqualTo(device.granularity());
      assertThat(segment.owned()).isTrue();
      assertThat(subject.read(segment.address(), (int) segment.bytes()))
          .isEqualTo(new byte[(int) segment.bytes()]);
    }
  }

  @Test
  void refusesSizesThatAreNone() {
    assertThatThrownBy(() -> device.allocate(0)).isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(() -> device.allocate(-1)).isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void lackOfMemoryIsTyped() {
    for (final long bytes : new long[] {1L << 45, Long.MAX_VALUE}) {
      assertThatThrownBy(() -> device.allocate(bytes))
          .isInstanceOfSatisfying(
              DeviceMemoryException.class,
              e -> {
                assertThat(e.category()).isEqualTo(ZerohopException.Category.RETRY);
                assertThat(e.requestedBytes()).isEqualTo(bytes);
              });
    }
  }

  @Test
  void mappedMemoryIsTheOwnersMemory() {
    try (Segment owner = device.allocate(1 << 20);
        Segment mapped = device.map(owner.export(), "a peer")) {
      final byte[] bytes = random(1, 1 << 20);
      subject.write(owner.address(), bytes);
      assertThat(mapped.owned()).isFalse();
      assertThat(mapped.bytes()).isEqualTo(owner.bytes());
      assertThat(subject.read(mapped.address(), bytes.length)).isEqualTo(bytes);
      assertThatThrownBy(mapped::export).isInstanceOf(IllegalStateException.class);
    }
  }

  @Test
  void mappedMemoryOutlivesItsOwner() {
    final Segment owner = device.allocate(1 << 16);
    final byte[] bytes = random(2, 1 << 16);
    subject.write(owner.address(), bytes);
    try (Segment mapped = device.map(owner.export(), "a peer")) {
      owner.close();
      assertThat(subject.read(mapped.address(), bytes.length)).isEqualTo(bytes);
    }
  }

  @Test
  void aStreamOfTheThreadIsWaitedForAndClosedByAnyOther() {
    try (Segment segment = device.allocate(1 << 22)) {
      final byte[] bytes = random(3, 1 << 20);
      subject.write(segment.address(), bytes);
      final CopyStream stream = device.openThreadStream("of this thread");
      final CopyBatch batch = stream.newBatch();
      for (int i = 0; i < 3; i++) {
        batch.clear();
        batch.add(
            segment.address() + ((long) i << 20), segment.address() + (i + 1L << 20), 1 << 20);
        stream.submit(batch);
      }
      CompletableFuture.runAsync(() -> stream.synchronize(LIMIT)).join();
      assertThat(subject.read(segment.address() + (3L << 20), bytes.length)).isEqualTo(bytes);
      batch.clear();
      batch.add(segment.address() + (1L << 20), segment.address(), 1 << 20);
      stream.submit(batch);
      CompletableFuture.runAsync(stream::close).join();
      assertThat(subject.read(segment.address(), bytes.length)).isEqualTo(bytes);
    }
  }

  @Test
  void closingTwiceIsClosingOnce() {
    final Segment segment = device.allocate(1);
    final SegmentHandle handle = segment.export();
    handle.close();
    handle.close();
    assertThatThrownBy(handle::fd).isInstanceOf(IllegalStateException.class);
    segment.close();
    segment.close();
    assertThatThrownBy(segment::export).isInstanceOf(IllegalStateException.class);
    final CopyStream stream = device.openStream("twice");
    stream.close();
    stream.close();
  }

  @Test
  void aDeviceNamesWhatIsLeftOpen() {
    try (Segment segment = device.allocate(1);
        CopyStream stream = device.openStream("forgotten")) {
      assertThat(device.openResources()).isEqualTo(2);
      assertThatThrownBy(device::close)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("forgotten")
          .hasMessageContaining("segment");
      assertThat(segment.bytes()).isPositive();
      stream.synchronize(LIMIT);
    }
  }

  @Test
  void whatPeersMayOnlyReadIsTheOwnersToWrite() {
    try (Segment owner = device.allocate(1 << 20, PeerAccess.READ);
        Segment mapped = device.map(owner.export(), "a peer", PeerAccess.READ)) {
      for (int seed = 3; seed < 5; seed++) {
        final byte[] bytes = random(seed, 1 << 20);
        subject.write(owner.address(), bytes);
        assertThat(subject.read(mapped.address(), bytes.length)).isEqualTo(bytes);
      }
    }
  }

  @Test
  void memoryOfAKilledExporterStaysReadable(@TempDir final Path scratch) throws Exception {
    final Path base = scratch.resolve("s");
    try (SocketFolder folder = SocketFolder.open(base, "app");
        ChildJvm child = child("export", base)) {
      assertThat(child.line()).isEqualTo("ready");
      try (PeerLink link =
              PeerLink.connect(
                  folder.socket("child"), "parent", "child", SegmentTable.SECRET, LIMIT);
          Segment mapped = device.map(link.fetch(ContractPeer.SEGMENT_ID, LIMIT), "a peer")) {
        final CompletableFuture<Void> ended = new CompletableFuture<>();
        link.onClosed(() -> ended.complete(null));
        assertThat(link.alive()).isTrue();
        child.kill();
        ended.join();
        assertThat(link.alive()).isFalse();
        assertThat(subject.read(mapped.address(), ContractPeer.PATTERN_BYTES))
            .isEqualTo(ContractPeer.pattern());
      }
      folder.sweep();
    }
  }

  @Test
  void borrowedMemoryIsWrittenAndHandedOn() {
    final Segment lender = device.allocate(1 << 20);
    final Segment borrowed = device.borrow(lender.export(), "a peer");
    final byte[] bytes = random(8, 1 << 20);
    subject.write(borrowed.address(), bytes);
    assertThat(borrowed.owned()).isFalse();
    assertThat(borrowed.exportFabric()).isNull();
    assertThat(subject.read(lender.address(), bytes.length)).isEqualTo(bytes);
    lender.close();
    try (Segment third = device.map(borrowed.export(), "the borrower", PeerAccess.READ)) {
      borrowed.close();
      assertThatThrownBy(borrowed::export).isInstanceOf(IllegalStateException.class);
      assertThat(subject.read(third.address(), bytes.length)).isEqualTo(bytes);
    }
  }

  /** A lender, a borrower and a reader, each a process; the lender is killed first. */
  @Test
  void memoryBorrowedFromAKilledProcessIsReadByAThird(@TempDir final Path scratch)
      throws Exception {
    final Path base = scratch.resolve("s");
    try (SocketFolder folder = SocketFolder.open(base, "app");
        ChildJvm child = child("export", base)) {
      assertThat(child.line()).isEqualTo("ready");
      final Segment borrowed;
      try (PeerLink link =
          PeerLink.connect(folder.socket("child"), "parent", "child", SegmentTable.SECRET, LIMIT)) {
        borrowed = device.borrow(link.fetch(ContractPeer.SEGMENT_ID, LIMIT), "a peer");
      }
      subject.write(borrowed.address(), new byte[ContractPeer.PATTERN_BYTES]);
      child.kill();
      copyThrough(borrowed, ContractPeer.pattern());
      try (SegmentServer server =
          new SegmentServer(
              folder,
              "parent",
              SegmentTable.SECRET,
              new SegmentTable().add(ContractPeer.SEGMENT_ID, borrowed),
              SegmentServer.Limits.DEFAULT)) {
        server.start();
        try (ChildJvm third = child("read", base)) {
          assertThat(third.line()).isEqualTo("same");
          assertThat(third.exitCode()).isZero();
        }
      }
      borrowed.close();
      folder.sweep();
    }
  }

  /** Brings bytes into a segment by copies of this device, as tasks do, and back to the host. */
  private void copyThrough(final Segment segment, final byte[] bytes) {
    try (Segment own = device.allocate(bytes.length);
        HostBuffer host = device.hostBuffer(bytes.length);
        CopyStream stream = device.openStream("borrowed")) {
      subject.write(own.address(), bytes);
      final CopyBatch batch = stream.newBatch();
      batch.add(own.address(), segment.address(), bytes.length);
      stream.submit(batch);
      batch.clear();
      batch.add(segment.address(), host.address(), bytes.length);
      stream.submit(batch);
      stream.synchronize(LIMIT);
      final byte[] back = new byte[bytes.length];
      new UnsafeBuffer(host.address(), bytes.length).getBytes(0, back);
      assertThat(back).isEqualTo(bytes);
    }
  }

  @Test
  void mappingTenThousandTimesLeavesNothing() {
    try (Segment segment = device.allocate(1)) {
      final Leaks before = new Leaks();
      for (int i = 0; i < 10_000; i++) {
        device.map(segment.export(), "a peer").close();
      }
      before.check();
    }
  }
}
