package io.zerohop.device.host;

import io.zerohop.device.Device;
import io.zerohop.device.DeviceUnderTest;
import org.agrona.concurrent.UnsafeBuffer;

/** Host memory is read and written where it lies. */
public final class HostUnderTest implements DeviceUnderTest {
  @Override
  public Device open() {
    return new HostDevice();
  }

  @Override
  public void write(final long address, final byte[] bytes) {
    new UnsafeBuffer(address, bytes.length).putBytes(0, bytes);
  }

  @Override
  public byte[] read(final long address, final int length) {
    final byte[] bytes = new byte[length];
    new UnsafeBuffer(address, length).getBytes(0, bytes);
    return bytes;
  }
}
