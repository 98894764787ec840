package io.zerohop.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.ChildJvm;
import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.DeviceMemoryException;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.exchange.OpaqueHandle;
import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.exchange.SegmentServer;
import io.zerohop.device.exchange.SegmentTable;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.host.HostDevice;
import java.nio.file.Path;
import java.util.Arrays;
import jcuda.driver.CUresult;
import jcuda.driver.JCudaDriver;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.api.io.TempDir;

/** What goes wrong with a GPU, and with the processes that share one. */
@EnabledIf(value = "io.zerohop.device.cuda.Gpus#one", disabledReason = "no GPU here")
class CudaFaultTest {
  private final CudaUnderTest memory = new CudaUnderTest();

  @TempDir private Path scratch;

  @Test
  void anExporterKilledWhileAPeerGathersTakesNoByteAlong() throws Exception {
    final Path base = scratch.resolve("s");
    try (CudaDevice device = new CudaDevice(0, 24);
        SocketFolder folder = SocketFolder.open(base, "app");
        ChildJvm child = child("export", base)) {
      assertThat(child.line()).isEqualTo("ready");
      try (PeerLink link =
              PeerLink.connect(
                  folder.socket("child"), "parent", "child", SegmentTable.SECRET, CudaPeer.LIMIT);
          Segment from = device.map(link.fetch(CudaPeer.SEGMENT_ID, CudaPeer.LIMIT), "a peer");
          Segment to = device.allocate(CudaPeer.BYTES);
          CopyStream stream = device.openStream("gather")) {
        final CopyBatch batch = stream.newBatch();
        CudaPeer.addBlocks(batch, from.address(), to.address());
        for (int round = 0; round < 3_000; round++) {
          stream.submit(batch);
          if (round == 500) {
            child.kill();
          }
        }
        stream.synchronize(CudaPeer.LIMIT);
        assertThat(Arrays.equals(memory.read(to.address(), CudaPeer.BYTES), CudaPeer.pattern()))
            .isTrue();
      }
      folder.sweep();
    }
  }

  @Test
  void aReaderKilledInTheMiddleLeavesTheOwnerAlone() throws Exception {
    final Path base = scratch.resolve("s");
    try (CudaDevice device = new CudaDevice(0, 24);
        Segment segment = device.allocate(CudaPeer.BYTES);
        SocketFolder folder = SocketFolder.open(base, "app");
        SegmentServer server = server(folder, segment);
        ChildJvm child = child("read", base)) {
      memory.write(segment.address(), CudaPeer.pattern());
      server.start();
      assertThat(child.line()).isEqualTo("reading");
      child.kill();
      assertThat(Arrays.equals(memory.read(segment.address(), CudaPeer.BYTES), CudaPeer.pattern()))
          .isTrue();
      try (CopyStream stream = device.openStream("after")) {
        final CopyBatch batch = stream.newBatch();
        batch.add(segment.address(), segment.address() + (4 << 20), 1 << 20);
        stream.submit(batch);
        stream.synchronize(CudaPeer.LIMIT);
      }
    }
  }

  @Test
  void mappingsComeAndGoWithoutAByte() {
    try (CudaDevice device = new CudaDevice(0, 24);
        Segment segment = device.allocate(1)) {
      device.map(segment.export(), "a peer").close();
      final long before = freeBytes();
      for (int i = 0; i < 10_000; i++) {
        device.map(segment.export(), "a peer").close();
      }
      assertThat(before - freeBytes()).isLessThan(4 << 20);
    }
  }

  @Test
  void lackOfMemoryIsAFailureThatPasses() {
    try (CudaDevice device = new CudaDevice(0, 24)) {
      final long tooMuch = freeBytes() + (1L << 30);
      assertThatThrownBy(() -> device.allocate(tooMuch))
          .isInstanceOf(DeviceMemoryException.class)
          .hasMessageContaining("no GPU memory for")
          .hasMessageContaining("GPU-");
      try (Segment segment = device.allocate(1 << 20)) {
        assertThat(segment.bytes()).isPositive();
      }
    }
  }

  @Test
  void anErrorOfTheContextIsFatalAndSaysWhatToDo() {
    try (CudaDevice device = new CudaDevice(0, 24);
        Segment segment = device.allocate(1);
        CopyStream stream = device.openStream("broken")) {
      for (final int status :
          new int[] {CUresult.CUDA_ERROR_ILLEGAL_ADDRESS, CUresult.CUDA_ERROR_LAUNCH_FAILED}) {
        stream.raise(device.signal(segment, 0), 1);
        stream.synchronize(CudaPeer.LIMIT);
        assertThatThrownBy(
                () -> {
                  CudaStatus.inject(status);
                  stream.synchronize(CudaPeer.LIMIT);
                })
            .isInstanceOfSatisfying(
                ZerohopException.class, e -> assertThat(e.category()).isEqualTo(Category.FATAL))
            .hasMessageContaining("the executor ends")
            .hasMessageContaining("GPU-");
      }
    }
  }

  @Test
  void handlesThatAreNoneAreRefused() {
    try (CudaDevice device = new CudaDevice(0, 24);
        HostDevice host = new HostDevice();
        Segment hostMemory = host.allocate(device.granularity());
        Segment own = device.allocate(1)) {
      refused(device, hostMemory.export());
      refused(device, new OpaqueHandle(SegmentHandle.Kind.FABRIC, own.bytes(), new byte[64]));
      try (SegmentHandle right = own.export()) {
        assertThat(right.kind()).isEqualTo(SegmentHandle.Kind.POSIX_FD);
      }
    }
  }

  private static void refused(final CudaDevice device, final SegmentHandle handle) {
    assertThatThrownBy(() -> device.map(handle, "a peer"))
        .isInstanceOfSatisfying(
            ZerohopException.class, e -> assertThat(e.category()).isEqualTo(Category.FALLBACK));
  }

  private static SegmentServer server(final SocketFolder folder, final Segment segment) {
    return new SegmentServer(
        folder,
        "parent",
        SegmentTable.SECRET,
        new SegmentTable().add(CudaPeer.SEGMENT_ID, segment),
        SegmentServer.Limits.DEFAULT);
  }

  private ChildJvm child(final String mode, final Path base) throws Exception {
    return ChildJvm.start(memory.peerPrefix(), CudaPeer.class, mode, base.toString());
  }

  private static long freeBytes() {
    CudaContext.of(0).enter();
    final long[] free = new long[1];
    final long[] total = new long[1];
    CudaStatus.check(JCudaDriver.cuMemGetInfo(free, total), "cuMemGetInfo", "test");
    return free[0];
  }
}
