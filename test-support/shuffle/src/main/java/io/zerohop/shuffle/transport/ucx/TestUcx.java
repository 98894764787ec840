package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.engine.UcxLoader;
import org.junit.jupiter.api.Assumptions;

/**
 * UCX for tests, which are skipped where there is none that is used; integration-tests/checks fails
 * the build if they are although there is.
 */
final class TestUcx {
  private TestUcx() {}

  static UcxEngine start() {
    return start(null, Clock.system());
  }

  /** The same by another clock than the system's. */
  static UcxEngine start(final Clock clock) {
    return start(null, clock);
  }

  /** The same by other devices than all. */
  static UcxEngine start(final NetworkDevices devices) {
    return start(devices, Clock.system());
  }

  private static UcxEngine start(final NetworkDevices devices, final Clock clock) {
    try {
      return UcxLoader.start(null, devices, () -> {}, clock);
    } catch (final UcxException e) {
      Assumptions.abort("no libucx of 1.19 or later here: " + e.getMessage());
      throw e;
    }
  }
}
