package io.zerohop.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Device;
import io.zerohop.device.DeviceContractTest;
import io.zerohop.device.DeviceUnderTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;

@EnabledIf(value = "io.zerohop.device.cuda.Gpus#one", disabledReason = "no GPU here")
class CudaDeviceTest extends DeviceContractTest {
  /** {@code CUDA_ERROR_NOT_SUPPORTED}: this machine cannot have adapters write to its GPUs. */
  private static final int NOT_SUPPORTED = 801;

  @Override
  protected DeviceUnderTest subject() {
    return new CudaUnderTest();
  }

  /** Of whichever GPU this is: bytes that an adapter wrote can be had in order. */
  @Test
  void writesOfAdaptersAreOrderedOrCanBeFlushed() {
    try (CudaDevice device = new CudaDevice(0, CudaDevice.DEFAULT_MULTIPROCESSORS)) {
      assertThat(device.adapterWrites()).isNotEqualTo(Device.AdapterWrites.UNORDERED);
      device.flushAdapterWrites();
      device.enter();
      final int status = DriverMemory.flushAdapterWrites();
      assertThat(status).isIn(CudaStatus.SUCCESS, NOT_SUPPORTED);
    }
  }
}
