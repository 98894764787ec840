package io.zerohop.device;

import java.util.List;

/**
 * What the contract tests need to know of a device beyond the contract. Implementations have a
 * public constructor without arguments, so that a child process can make one too.
 */
public interface DeviceUnderTest {

  /** Opens the device. */
  Device open();

  /** Puts bytes into the device's memory. */
  void write(long address, byte[] bytes);

  /** Gets bytes from the device's memory. */
  byte[] read(long address, int length);

  /** What goes before the command of another process that is to be a peer. */
  default List<String> peerPrefix() {
    return List.of();
  }
}
