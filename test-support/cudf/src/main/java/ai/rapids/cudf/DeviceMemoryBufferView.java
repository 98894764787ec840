package ai.rapids.cudf;

/** As cudf's: memory of somebody else. */
final class DeviceMemoryBufferView extends BaseDeviceMemoryBuffer {
  DeviceMemoryBufferView(final long address, final long length) {
    super(address, length, null);
  }
}
