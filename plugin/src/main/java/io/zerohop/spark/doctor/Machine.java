package io.zerohop.spark.doctor;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.ucx.adapter.AdapterChoice;
import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices;
import io.zerohop.shuffle.transport.ucx.engine.RdmaDevices;
import io.zerohop.shuffle.transport.ucx.engine.UcxLoader;
import io.zerohop.shuffle.transport.ucx.engine.UcxStarter;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** All checks of the machine that this process runs on, in the order of the report. */
public final class Machine {
  static final Duration SHORT = Duration.ofSeconds(15);
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final Duration MEASURING = Duration.ofSeconds(120);

  private final Wanted wanted;
  private final Gpus gpus = new Gpus.Cuda();

  private Machine(final Wanted wanted) {
    this.wanted = wanted;
  }

  /**
   * Examines it.
   *
   * @param settings what the machine is asked for
   * @param measures whether to measure rates, too
   */
  public static void examine(
      final Examination examination, final Settings settings, final boolean measures) {
    new Machine(wanted(examination, settings)).examine(examination, measures);
  }

  /** What is not valid is said, and the rest is looked at by the defaults. */
  private static Wanted wanted(final Examination examination, final Settings settings) {
    try {
      return Wanted.of(settings::get);
    } catch (final IllegalArgumentException e) {
      final Finding invalid =
          Finding.fail(Item.MANAGER, e.getMessage(), "see docs/configuration.md for the values");
      examination.run(Item.MANAGER, SHORT, notes -> notes.add(invalid));
      return Wanted.of(key -> null);
    }
  }

  private void examine(final Examination examination, final boolean measures) {
    final UcxStarter ucx = ucx();
    examination
        .run(Item.GLIBC, SHORT, new Glibc(SystemFiles.SYSTEM))
        .run(Item.LIBRARY, SHORT, new PlatformCheck())
        .run(Item.MEMORY, SHORT, new LimitCheck(wanted.ucx()))
        .run(Item.SOCKETS, LONG, new SocketCheck(wanted.socketBase()))
        .run(
            Item.DRIVER,
            LONG,
            new GpuCheck(gpus, wanted.rapids(), SystemFiles.SYSTEM.gpusOnTheBus()))
        .run(Item.LIBUCX, LONG, this::ucx)
        .run(Item.ADAPTERS, LONG, this::adapters);
    if (measures) {
      examination
          .run(Item.RATES, LONG, RateCheck.host(wanted))
          .run(Item.RATES, MEASURING, RateCheck.gpus(gpus))
          .run(Item.RATES, LONG, RateCheck.ucx(ucx))
          .run(Item.RATES, LONG, RateCheck.fallback());
    }
  }

  /** Whether the port for other nodes can be served here, by a process that does not do so yet. */
  static void examinePort(final Examination examination, final Settings settings) {
    examination.run(Item.PORT, SHORT, notes -> new PortCheck(settings::get).run(notes));
  }

  private UcxStarter ucx() {
    return (oneSided, onStart) ->
        UcxLoader.start(wanted.jucx(), devices(), oneSided, this::enterGpu, Clock.system());
  }

  /** As a node does it: without, UCX takes slow ways to GPU memory. The context stays entered. */
  private void enterGpu() {
    if (gpus.absence() != null) {
      return;
    }
    try (Gpus.Gpu gpu = gpus.open(0)) {
      gpu.device().enter();
    } catch (final ZerohopException e) {
      return; // GpuCheck says so; UCX goes on without.
    }
  }

  /** Those of this host's own address, as an executor that is known by it takes them. */
  private static NetworkDevices devices() {
    try {
      return NetworkDevices.of(InetAddress.getLocalHost().getHostAddress(), null).orElse(null);
    } catch (final UnknownHostException e) {
      return null;
    }
  }

  private void ucx(final Notes notes) {
    new UcxCheck(
            ucx(), UcxCheck::loadedVersion, wanted.ucx(), gpus.absence() == null, RdmaDevices.any())
        .run(notes);
  }

  private void adapters(final Notes notes) {
    final List<Boolean> dmaBuf = new ArrayList<>();
    String address = null;
    if (RdmaDevices.any() && gpus.absence() == null) {
      for (int ordinal = 0; ordinal < gpus.count(); ordinal++) {
        try (Gpus.Gpu gpu = gpus.open(ordinal)) {
          dmaBuf.add(gpu.dmaBuf());
          address = address == null ? gpu.pciAddress() : address;
        }
      }
    }
    new AdapterCheck(
            wanted.ucx(),
            RdmaDevices.any(),
            AdapterChoice.of(address),
            dmaBuf,
            RdmaDevices.peermem())
        .run(notes);
  }
}
