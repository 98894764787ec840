package io.zerohop.device.cuda;

import io.zerohop.device.Device;
import io.zerohop.device.DeviceUnderTest;
import java.nio.ByteBuffer;
import java.util.List;
import jcuda.Pointer;
import jcuda.driver.CUstream;
import jcuda.driver.CUstream_flags;
import jcuda.driver.JCudaDriver;

/** GPU memory is read and written by copies. ZEROHOP_TEST_GPU chooses the GPU. */
public final class CudaUnderTest implements DeviceUnderTest {
  private static int ordinal() {
    final String chosen = System.getenv("ZEROHOP_TEST_GPU");
    return chosen == null ? 0 : Integer.parseInt(chosen);
  }

  @Override
  public Device open() {
    return new CudaDevice(ordinal(), CudaDevice.DEFAULT_MULTIPROCESSORS);
  }

  /** ZEROHOP_PEER_DEVICES is what peers get to see as CUDA_VISIBLE_DEVICES. */
  @Override
  public List<String> peerPrefix() {
    final String devices = System.getenv("ZEROHOP_PEER_DEVICES");
    return devices == null ? List.of() : List.of("env", "CUDA_VISIBLE_DEVICES=" + devices);
  }

  @Override
  public void write(final long address, final byte[] bytes) {
    CudaContext.of(ordinal()).enter();
    // A synchronous copy may return before its last bytes have landed, and orders nothing with
    // streams that do not block.
    final ByteBuffer direct = ByteBuffer.allocateDirect(bytes.length).put(0, bytes);
    final CUstream stream = new CUstream();
    check(JCudaDriver.cuStreamCreate(stream, CUstream_flags.CU_STREAM_NON_BLOCKING));
    check(
        JCudaDriver.cuMemcpyHtoDAsync(
            Addresses.device(address), Pointer.to(direct), bytes.length, stream));
    check(JCudaDriver.cuStreamSynchronize(stream));
    check(JCudaDriver.cuStreamDestroy(stream));
  }

  private static void check(final int status) {
    CudaStatus.check(status, "driver call", "test");
  }

  @Override
  public byte[] read(final long address, final int length) {
    CudaContext.of(ordinal()).enter();
    final byte[] bytes = new byte[length];
    if (length > 0) {
      CudaStatus.check(
          JCudaDriver.cuMemcpyDtoH(Pointer.to(bytes), Addresses.device(address), length),
          "cuMemcpyDtoH",
          "test");
    }
    return bytes;
  }
}
