package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.engine.UcxLoader;
import java.nio.file.Path;
import org.junit.jupiter.api.Assumptions;

/** UCX for tests; where there is none they are skipped, but never under CI. */
final class TestUcx {
  private TestUcx() {}

  /** The jucx that fits the libucx of CI's machine. */
  static Path jucx() {
    return Path.of(System.getProperty("zerohop.jucx"));
  }

  static UcxEngine start() {
    return start(null, true);
  }

  /** The same by another clock than the system's. */
  static UcxEngine start(final Clock clock) {
    return start(null, true, clock);
  }

  /** The same with what {@link UcxLoader#start} knows. */
  static UcxEngine start(final NetworkDevices devices, final boolean oneSided) {
    return start(devices, oneSided, Clock.system());
  }

  private static UcxEngine start(
      final NetworkDevices devices, final boolean oneSided, final Clock clock) {
    try {
      return UcxLoader.start(jucx(), devices, oneSided, () -> {}, clock);
    } catch (final UcxException e) {
      if (System.getenv("CI") != null) {
        throw e;
      }
      Assumptions.abort("no libucx here (Debian: apt-get install libucx0): " + e.getMessage());
      throw e;
    }
  }
}
