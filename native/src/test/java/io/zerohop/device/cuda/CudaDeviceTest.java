package io.zerohop.device.cuda;

import io.zerohop.device.DeviceContractTest;
import io.zerohop.device.DeviceUnderTest;
import org.junit.jupiter.api.condition.EnabledIf;

@EnabledIf(value = "io.zerohop.device.cuda.Gpus#one", disabledReason = "no GPU here")
class CudaDeviceTest extends DeviceContractTest {
  @Override
  protected DeviceUnderTest subject() {
    return new CudaUnderTest();
  }
}
