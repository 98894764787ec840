package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.ucx.adapter.AdapterChoice;
import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices;
import io.zerohop.shuffle.transport.ucx.engine.RdmaDevices;
import io.zerohop.shuffle.transport.ucx.engine.UcxLoader;
import io.zerohop.shuffle.transport.ucx.engine.UcxStarter;
import java.io.IOException;
import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** All checks of the machine that this process runs on, in the order of the report. */
public final class Machine {
  static final Duration SHORT = Duration.ofSeconds(15);
  private static final Duration LONG = Duration.ofMinutes(1);
  private static final Duration MEASURING = Duration.ofMinutes(2);

  private final Wanted wanted;
  private final String host;
  private final Gpus gpus = new Gpus.Cuda();

  private Machine(final Wanted wanted, final String host) {
    this.wanted = wanted;
    this.host = host;
  }

  /**
   * Examines it.
   *
   * @param settings what the machine is asked for
   * @param host by which others know this process; null for this host's own address
   * @param measures whether to measure rates, too
   */
  public static void examine(
      final Examination examination,
      final Settings settings,
      final String host,
      final boolean measures) {
    new Machine(wanted(examination, settings), host).examine(examination, measures);
  }

  /** What is not valid is said, and the rest is looked at by the defaults. */
  private static Wanted wanted(final Examination examination, final Settings settings) {
    try {
      return Wanted.of(settings);
    } catch (final IllegalArgumentException e) {
      final Finding invalid =
          Finding.fail(Item.MANAGER, e.getMessage(), "see docs/configuration.md for the values");
      examination.run(Item.MANAGER, SHORT, notes -> notes.add(invalid));
      return Wanted.of(Settings.of(Map.of()));
    }
  }

  private void examine(final Examination examination, final boolean measures) {
    final Finding noUcx = noUcx();
    examination
        .run(Item.GLIBC, SHORT, new Glibc(SystemFiles.SYSTEM))
        .run(Item.LIBRARY, SHORT, new PlatformCheck())
        .run(Item.MEMORY, SHORT, new LimitCheck(wanted.ucx()))
        .run(Item.SOCKETS, LONG, new SocketCheck(wanted.conf().socketDir()))
        .run(
            Item.DRIVER,
            LONG,
            new GpuCheck(gpus, wanted.rapids(), SystemFiles.SYSTEM.gpusOnTheBus()))
        .run(Item.LIBUCX, LONG, notes -> ucx(notes, noUcx))
        .run(Item.ADAPTERS, LONG, this::adapters);
    if (measures) {
      examination
          .run(Item.RATES, LONG, RateCheck.host(wanted))
          .run(Item.RATES, MEASURING, RateCheck.gpus(gpus))
          .run(Item.RATES, LONG, RateCheck.fallback());
      if (noUcx == null) {
        examination.run(Item.RATES, LONG, RateCheck.ucx(starter()));
      }
    }
  }

  /** Whether the port for other nodes can be served here, by a process that does not do so yet. */
  static void examinePort(final Examination examination, final Settings settings) {
    examination.run(Item.PORT, SHORT, notes -> new PortCheck(settings::get).run(notes));
  }

  /** Why UCX is not started, with what allows it; null if it may be. */
  private Finding noUcx() {
    if (!wanted.ucx()) {
      return Finding.skip(
          Item.JUCX,
          Message.of("not tried, since UCX opens a port that anybody may use")
              .because(wanted.noPort()));
    }
    final String key = "spark.zerohop.ucx.jucx";
    if (wanted.jucxOfFile()) {
      return Finding.of(
          Item.JUCX,
          Verdict.SKIP,
          "not tried: code that a file names is not loaded, here "
              + wanted.conf().ucx().jucx()
              + " by "
              + key,
          "say it on the command line: --conf " + key + "=" + wanted.conf().ucx().jucx());
    }
    final String refusal =
        wanted.conf().ucx().jucx() == null
            ? null
            : new ForeignCode().refusal(wanted.conf().ucx().jucx());
    if (refusal != null) {
      return Finding.fail(
          Item.JUCX,
          refusal,
          "give the jar and the folders above it to root alone, or run as another user");
    }
    return wanted.conf().ucx().emulatedGets() || RdmaDevices.any() || gpus.absence() == null
        ? null
        : Finding.skip(
            Item.JUCX, "not tried: with neither an RDMA adapter nor a GPU executors start no UCX");
  }

  private UcxStarter starter() {
    return onStart ->
        UcxLoader.start(wanted.conf().ucx().jucx(), devices(), this::enterGpu, Clock.system());
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

  /**
   * As executors take them: those of this process's own address, or all where no interface has it.
   */
  private NetworkDevices devices() {
    try {
      return NetworkDevices.of(host == null ? ownAddress() : host, null).orElse(null);
    } catch (final IOException e) {
      return null;
    }
  }

  /**
   * An address of this host. Not the loopback's, if there is another: over that alone libucx
   * reaches nobody.
   */
  public static String ownAddress() throws IOException {
    final InetAddress own = InetAddress.getLocalHost();
    return (own.isLoopbackAddress()
            ? NetworkInterface.networkInterfaces()
                .flatMap(NetworkInterface::inetAddresses)
                .filter(it -> it instanceof Inet4Address && !it.isLoopbackAddress())
                .findFirst()
                .orElse(own)
            : own)
        .getHostAddress();
  }

  private void ucx(final Notes notes, final Finding noUcx) {
    new UcxCheck(
            UcxLoader::look,
            UcxCheck::loadedVersion,
            new UcxCheck.Trial(starter(), noUcx, wanted.ucx()),
            gpus.absence() == null)
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
