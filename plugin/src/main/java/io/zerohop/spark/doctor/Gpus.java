package io.zerohop.spark.doctor;

import io.zerohop.device.Device;
import io.zerohop.device.Message;
import io.zerohop.device.Topology;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.cuda.CudaDevice;
import io.zerohop.device.cuda.CudaDriver;
import io.zerohop.device.cuda.TopologyReader;
import org.jspecify.annotations.Nullable;

/** The GPUs that this process can use, as executors do. */
interface Gpus {

  /** Returns why none can be used; null if one can. */
  @Nullable Message absence();

  /** Returns why the jar has no kernels; null if it has. */
  @Nullable Message missingKernels();

  int count();

  /** Returns the topology of all GPUs of the machine. */
  Topology topology();

  /**
   * Opens one, with its kernels.
   *
   * @throws ZerohopException if there is no such GPU, or no kernel for it
   */
  Gpu open(int ordinal);

  /**
   * One GPU.
   *
   * @param device owned by whoever opened it
   * @param uuid as the topology has it
   * @param pciAddress where it is on the bus
   * @param description for people
   * @param dmaBuf whether adapters may reach its memory by dma-buf
   */
  record Gpu(Device device, String uuid, String pciAddress, String description, boolean dmaBuf)
      implements AutoCloseable {
    @Override
    public void close() {
      device.close();
    }
  }

  /** Implementation with CUDA's driver and NVML. */
  final class Cuda implements Gpus {
    @Override
    public @Nullable Message absence() {
      return CudaDriver.absence();
    }

    @Override
    public @Nullable Message missingKernels() {
      return CudaDevice.missingKernels();
    }

    @Override
    public int count() {
      return CudaDriver.devices();
    }

    @Override
    public Topology topology() {
      return TopologyReader.read();
    }

    @Override
    public Gpu open(final int ordinal) {
      final CudaDevice device = new CudaDevice(ordinal, CudaDevice.DEFAULT_MULTIPROCESSORS);
      return new Gpu(
          device, device.uuid(), device.pciAddress(), device.describe(), device.dmaBufCapable());
    }
  }
}
