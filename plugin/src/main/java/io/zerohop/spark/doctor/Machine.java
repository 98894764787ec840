package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.host.HostDevice;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.Memory;
import io.zerohop.device.posix.NativeLibrary;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.transport.ucx.adapter.AdapterChoice;
import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices;
import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices.RdmaDevices;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxStarter;
import io.zerohop.shuffle.transport.ucx.engine.UcxLoader;
import io.zerohop.spark.conf.NetworkTrust;
import io.zerohop.spark.doctor.Examination.Check;
import io.zerohop.spark.doctor.Examination.Notes;
import io.zerohop.spark.doctor.Finding.Verdict;
import io.zerohop.spark.doctor.GpuCheck.Gpus;
import io.zerohop.spark.doctor.Settings.Wanted;
import io.zerohop.spark.keeper.DaemonLink;
import java.io.IOException;
import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;

/** All checks of the machine that this process runs on, in the order of the report. */
public final class Machine {
  static final Duration SHORT = Duration.ofSeconds(15);
  private static final Duration LONG = Duration.ofMinutes(1);
  private static final Duration MEASURING = Duration.ofMinutes(2);

  private final Wanted wanted;
  private final @Nullable String host;

  private final Gpus gpus = new Gpus.Cuda();

  private Machine(final Wanted wanted, final @Nullable String host) {
    this.wanted = wanted;
    this.host = host;
  }

  /**
   * Examines it.
   *
   * @param host by which others know this process; without one, this host's own address
   */
  public static void examine(
      final Examination examination,
      final Settings settings,
      final @Nullable String host,
      final boolean measures) {
    new Machine(wanted(examination, settings), host).examine(examination, measures);
  }

  /** What is not valid is said, and the rest is looked at by the defaults. */
  private static Wanted wanted(final Examination examination, final Settings settings) {
    try {
      return Wanted.of(settings);
    } catch (final IllegalArgumentException e) {
      examination
          .notes()
          .add(
              Item.MANAGER.fail(
                  String.valueOf(e.getMessage()), "see docs/configuration.md for the values"));
      return Wanted.of(Settings.of(Map.of()));
    }
  }

  private void examine(final Examination examination, final boolean measures) {
    final Finding noUcx = noUcx();
    examination
        .run(Item.GLIBC, SHORT, new Glibc(SystemFiles.SYSTEM))
        .run(Item.LIBRARY, SHORT, new PlatformCheck())
        .run(Item.MEMORY, SHORT, new LimitCheck(wanted.ucx()))
        .run(Item.SOCKETS, LONG, new SocketCheck(wanted.conf().socketDir()));
    if (wanted.conf().keeper().enabled()) {
      examination.run(Item.KEEPER, SHORT, new KeeperCheck(wanted.conf()));
    }
    examination
        .run(
            Item.DRIVER,
            LONG,
            new GpuCheck(gpus, wanted.rapids(), SystemFiles.SYSTEM::gpusOnTheBus))
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
  private @Nullable Finding noUcx() {
    final Message noPort = wanted.noPort();
    if (noPort != null) {
      return Item.JUCX.skip(
          Message.of("not tried, since UCX opens a port that anybody may use").because(noPort));
    }
    final String key = "spark.zerohop.ucx.jucx";
    final Path jucx = wanted.conf().ucx().jucx();
    if (wanted.jucxOfFile()) {
      return Item.JUCX.found(
          Verdict.SKIP,
          "not tried: code that a file names is not loaded, here " + jucx + " by " + key,
          "say it on the command line: --conf " + key + "=" + jucx);
    }
    final String refusal = jucx == null ? null : new ForeignCode().refusal(jucx);
    if (refusal != null) {
      return Item.JUCX.fail(
          refusal, "give the jar and the folders above it to root alone, or run as another user");
    }
    return wanted.conf().ucx().emulatedGets() || RdmaDevices.any() || gpus.absence() == null
        ? null
        : Item.JUCX.skip(
            "not tried: with neither an RDMA adapter nor a GPU executors start no UCX");
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
  private @Nullable NetworkDevices devices() {
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

  private void ucx(final Notes notes, final @Nullable Finding noUcx) {
    new UcxCheck(
            UcxLoader::look,
            NativeLibrary::libucpVersion,
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

  /**
   * A check of whether the port for other nodes, or one behind it, can be served on this host. The
   * port is bound and not listened at, so nobody can connect to it meanwhile.
   */
  static final class PortCheck implements Check {
    private static final String DEFAULT_RETRIES = "16";
    private static final int MAX_PORT = 65_535;

    private final int first;
    private final int retries;

    /** Why executors open none, if so. */
    private final @Nullable Message noPort;

    /**
     * @param settings the value of a key; null if it is not set
     */
    PortCheck(final UnaryOperator<@Nullable String> settings) {
      first = Config.read(settings).port();
      final String set = settings.apply("spark.port.maxRetries");
      retries = Integer.parseInt(set == null ? DEFAULT_RETRIES : set.trim());
      noPort = NetworkTrust.obstacle(settings);
    }

    @Override
    public void run(final Notes notes) {
      if (noPort != null) {
        notes.add(
            Item.PORT.skip(Message.of("executors open no port for other nodes").because(noPort)));
        return;
      }
      if (first == 0) {
        notes.add(Item.PORT.ok("spark.zerohop.port is 0: any free port is taken"));
        return;
      }
      IOException last = null;
      for (int port = first; port <= Math.min(MAX_PORT, first + retries); port++) {
        try (Socket socket = new Socket()) {
          socket.setReuseAddress(true); // As whoever listens there does it.
          socket.bind(new InetSocketAddress(InetAddress.getLocalHost(), port));
          notes.add(Item.PORT.ok("port " + port + " is free on this host"));
          return;
        } catch (final IOException e) {
          last = e;
        }
      }
      notes.add(
          Item.PORT.fail(
              "no port from " + first + " to " + (first + retries) + " can be served here: " + last,
              "set spark.zerohop.port to a free one or 0, or raise spark.port.maxRetries"));
    }
  }

  /**
   * The folder by which executors of a node find each other, and two nodes that do so. What is made
   * in it goes with the nodes, and the folder, too, unless somebody else uses it.
   *
   * @param base without one, the default
   */
  record SocketCheck(@Nullable Path base) implements Check {
    /** Enough to be more than one region. */
    private static final int BYTES = 4 << 20;

    @Override
    public void run(final Notes notes) {
      try (SocketFolder folder =
          SocketFolder.open(base, NodePair.APPLICATION, NodePair.newSecret())) {
        notes.add(
            Item.SOCKETS.ok(
                folder.path().getParent()
                    + " can be used by this user ("
                    + Integer.toUnsignedString(Descriptor.userId())
                    + "), folder "
                    + folder.identity()
                    + " on this machine"));
      } catch (final ZerohopException e) {
        notes.add(Item.SOCKETS.fail(e, "set spark.zerohop.socket.dir to a folder of your own"));
        notes.add(Item.PEERS.skip("there is no socket folder"));
        return;
      }
      peers(notes);
    }

    private void peers(final Notes notes) {
      try (NodePair nodes = new NodePair(base, BYTES)) {
        nodes.readAsPeer();
        notes.add(Item.PEERS.ok("two nodes here prove themselves and read each other in place"));
      } catch (final ZerohopException e) {
        notes.add(Item.PEERS.fail(e, "see the reasons in the executors' logs"));
      }
    }
  }

  /** Java, the native library, and shared memory as segments are made of it. */
  private static final class PlatformCheck implements Check {
    private static final int MIN_JAVA = 17;
    private static final int BYTES = 1 << 20;
    private static final int WORD = 0x5a4f;

    @Override
    public void run(final Notes notes) {
      notes.add(java());
      NativeLibrary.require(); // Its failure is the finding: see Examination.
      notes.add(Item.LIBRARY.ok("the native library is loaded"));
      notes.add(sharedMemory());
    }

    private static Finding java() {
      final int java = Runtime.version().feature();
      final String architecture = System.getProperty("os.arch", "?");
      final String found =
          "Java " + java + " (" + System.getProperty("java.vm.name", "?") + "), " + architecture;
      if (java < MIN_JAVA) {
        return Item.JAVA.fail(found, "run Java 17 or later on driver and executors");
      }
      return architecture.equals("amd64")
          ? Item.JAVA.ok(found)
          : Item.JAVA.warn(
              found + ": tested on an emulator only, and without GPUs",
              "compare some results with those of x86-64 (docs/limits.md)");
    }

    private static Finding sharedMemory() {
      try (HostDevice owner = new HostDevice();
          HostDevice peer = new HostDevice();
          Segment segment = owner.allocate(BYTES, PeerAccess.READ)) {
        new UnsafeBuffer(segment.address(), BYTES).putInt(0, WORD);
        final SegmentHandle handle = segment.export();
        final boolean readOnly = Memory.isReadOnly(handle.fd());
        try (Segment mapped = peer.map(handle, "this process", PeerAccess.READ)) {
          if (new UnsafeBuffer(mapped.address(), BYTES).getInt(0) != WORD) {
            return Item.MEMFD.fail("a mapping of shared memory shows other bytes", "");
          }
        }
        return readOnly
            ? Item.MEMFD.ok("shared memory is sealed, and mapped as peers map it")
            : Item.MEMFD.warn(
                "the kernel does not seal shared memory against writers (F_SEAL_FUTURE_WRITE)",
                "Linux 5.1 or later does; until then executors are trusted with one another's"
                    + " blocks");
      }
    }
  }

  /**
   * RDMA ports, and whether they reach GPU memory.
   *
   * @param wanted whether executors would use UCX
   * @param present whether the machine has an adapter
   * @param choice the ports that an executor would use
   * @param dmaBuf of each GPU, whether the driver hands its memory out by dma-buf
   * @param peermem whether NVIDIA's module is loaded
   */
  record AdapterCheck(
      boolean wanted, boolean present, AdapterChoice choice, List<Boolean> dmaBuf, boolean peermem)
      implements Check {
    @Override
    public void run(final Notes notes) {
      if (!present) {
        notes.add(Item.ADAPTERS.skip("no RDMA adapter in /sys/class/infiniband"));
        notes.add(Item.GPUDIRECT.skip("there is no RDMA adapter"));
        return;
      }
      notes.add(
          choice.ports().isEmpty()
              ? Item.ADAPTERS.found(
                  Verdict.WARN.where(wanted),
                  choice.describe(),
                  "bring a link up (ibstat), or give the container /dev/infiniband")
              : Item.ADAPTERS.ok(choice.describe()));
      notes.add(gpuDirect());
    }

    private Finding gpuDirect() {
      if (dmaBuf.isEmpty()) {
        return Item.GPUDIRECT.skip("there is no GPU");
      }
      final boolean all = dmaBuf.stream().allMatch(Boolean::booleanValue);
      if (peermem || all) {
        return Item.GPUDIRECT.ok(
            (peermem ? "nvidia-peermem is loaded" : "nvidia-peermem is not loaded")
                + (all ? ", and GPU memory is handed out by dma-buf" : ""));
      }
      return Item.GPUDIRECT.found(
          Verdict.WARN.where(wanted),
          "neither nvidia-peermem nor dma-buf: adapters do not reach GPU memory",
          "modprobe nvidia-peermem, or use NVIDIA's open kernel module with Linux 5.12 or later");
    }
  }

  /** Checks whether an application of these keys would have a keeper here, and who starts it. */
  record KeeperCheck(Config conf) implements Check {
    private static final Duration LIMIT = Duration.ofSeconds(3);

    @Override
    public void run(final Notes notes) {
      notes.add(look());
    }

    Finding look() {
      if (!conf.paths().contains(BlockPath.PEER)) {
        return Item.KEEPER.warn(
            "there is no keeper, since spark.zerohop.paths lacks peer",
            "add peer, or set spark.zerohop.keeper=false");
      }
      final Path set = conf.keeper().daemon();
      final Path folder = DaemonLink.folder(set);
      if (set == null && !Files.exists(folder)) {
        return Item.KEEPER.ok(
            "the first executor starts the keeper, as there is no daemon at " + folder);
      }
      try {
        return ofDaemon(folder, DaemonLink.ask(folder, null, LIMIT));
      } catch (final ZerohopException e) {
        return Item.KEEPER.warn(
            Message.of("the first executor starts the keeper, as the daemon does not")
                .at(folder.toString())
                .because(e)
                .orRemedy("run java -jar zerohop-spark.jar keeper (docs/keeper.md)"));
      }
    }

    private static Finding ofDaemon(final Path folder, final DaemonLink.Answer answer) {
      final String found =
          "the daemon at "
              + folder
              + (answer.release().isEmpty() ? "" : ", release " + answer.release() + ",")
              + " has "
              + answer.keepers()
              + " of "
              + answer.maxKeepers()
              + " keepers, and "
              + answer.left()
              + " of "
              + answer.bytes()
              + " bytes left";
      if (!answer.text().isEmpty()) {
        return Item.KEEPER.warn(found + ": it starts none now", answer.text());
      }
      return answer.keepers() < answer.maxKeepers() && answer.left() > 0
          ? Item.KEEPER.ok(found)
          : Item.KEEPER.warn(
              found + ": it starts none now",
              "raise --size or --keepers of the daemon, or end an application");
    }
  }
}
