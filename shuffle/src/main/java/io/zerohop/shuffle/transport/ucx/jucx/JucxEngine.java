package io.zerohop.shuffle.transport.ucx.jucx;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.Message;
import io.zerohop.device.Transitions;
import io.zerohop.device.Undo;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.NativeLibrary;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices;
import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices.RdmaDevices;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxMemory;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.engine.UcxException.OldLibucxException;
import io.zerohop.shuffle.transport.ucx.engine.UcxLoader.UcxLibrary;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.openucx.jucx.NativeLibs;
import org.openucx.jucx.UcxCallback;
import org.openucx.jucx.ucp.UcpContext;
import org.openucx.jucx.ucp.UcpEndpoint;
import org.openucx.jucx.ucp.UcpMemMapParams;
import org.openucx.jucx.ucp.UcpMemory;
import org.openucx.jucx.ucp.UcpParams;
import org.openucx.jucx.ucp.UcpRemoteKey;
import org.openucx.jucx.ucp.UcpRequestParams;
import org.openucx.jucx.ucp.UcpWorker;
import org.openucx.jucx.ucp.UcpWorkerParams;
import org.openucx.jucx.ucs.UcsConstants;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * {@link UcxEngine} by jucx. This package is the one place that knows jucx. {@code UcxLoader} may
 * load it a second time, together with another jucx: nothing else refers to it by name.
 */
public final class JucxEngine implements UcxEngine {
  /**
   * Kinds of memory, said with every request: what jucx says otherwise is a number of the libucx
   * that it was built with, which others take for something else. These two are the same in all
   * (ucs/memory/memory_type.h).
   */
  static final int HOST = 0;

  static final int GPU = 1;

  /** What a request needs to say which memory it goes to; not in jucx before 1.16. */
  private static final String PARAMS = "org.openucx.jucx.ucp.UcpRequestParams";

  private final LibucxVersion version;
  private final UcpContext context;
  private final JucxWorker worker;
  private final byte[] address;
  private final long memoryTypes;

  private final Set<JucxEndpoint> endpoints = ConcurrentHashMap.newKeySet();

  /** Withdrawn before the context is closed, even if others still have them. */
  private final Set<JucxMemory> memories = ConcurrentHashMap.newKeySet();

  @GuardedBy("this")
  private Lifecycle state = Lifecycle.OPEN;

  private JucxEngine(
      final LibucxVersion version,
      final UcpContext context,
      final UcpWorker worker,
      final Runnable onStart,
      final Duration spin,
      final Clock clock) {
    this.version = version;
    this.context = context;
    this.memoryTypes = context.getMemoryTypesMask();
    JucxWorker driven = null;
    try {
      driven = new JucxWorker(worker, onStart, spin, clock);
    } finally {
      if (driven == null) { // There was no thread for it.
        worker.close();
        context.close();
      }
    }
    this.worker = driven;
    byte[] own = null;
    try {
      own = this.worker.call("name its address", () -> bytes(worker.getAddress()));
    } finally {
      if (own == null && this.worker.close(() -> {})) {
        context.close();
      }
    }
    this.address = own;
  }

  /**
   * Starts UCX.
   *
   * @param devices what it may listen on and connect by; absent for all
   * @param onStart run by its thread first of all, and by the caller's; enters the GPU's context
   *     where there is one, without which UCX takes slow ways to GPU memory and says nothing
   * @param spin how long its thread looks for progress before it sleeps, while requests are under
   *     way
   * @param clock by which its limits are measured
   * @throws UcxException if it cannot be: libucx is not there, too old, or of another kind than
   *     jucx
   */
  public static UcxEngine start(
      final @Nullable NetworkDevices devices,
      final Runnable onStart,
      final Duration spin,
      final Clock clock) {
    try {
      onStart.run(); // Here, too: the transports are opened by this thread.
      // Several threads register memory; one drives the worker.
      NativeLibs.load();
      final LibucxVersion version = LibucxVersion.loaded();
      final UcpContext context = new UcpContext(contextParams(devices));
      final UcpWorker worker;
      try (Undo undo = new Undo(context)) {
        worker = undo.keep(context.newWorker(workerParams()));
      } // From here on both belong to the engine, whether it comes to be or not.
      return new JucxEngine(version, context, worker, onStart, spin, clock);
    } catch (final OldLibucxException e) {
      throw e;
    } catch (final RuntimeException | LinkageError e) {
      throw new UcxException(Message.of("UCX cannot be used").because(e), e);
    } finally {
      LibraryCopy.remove(); // Also if the start failed: it is loaded even so.
    }
  }

  /**
   * Loads jucx and libucx and asks them what they are. No worker is made, and so nothing listens
   * and nobody is answered.
   *
   * @throws UcxException if they cannot be loaded, or libucx is too old
   */
  public static UcxLibrary look() {
    UcpContext context = null;
    try {
      NativeLibs.load();
      final LibucxVersion version = LibucxVersion.loaded();
      context = new UcpContext(new UcpParams().requestRmaFeature());
      final long memoryTypes = context.getMemoryTypesMask();
      return new UcxLibrary(
          describe(version, memoryTypes), knowsGpuMemory(memoryTypes) && saysMemory());
    } catch (final OldLibucxException e) {
      throw e;
    } catch (final RuntimeException | LinkageError e) {
      throw new UcxException(Message.of("UCX cannot be used").because(e), e);
    } finally {
      LibraryCopy.remove();
      if (context != null) {
        context.close();
      }
    }
  }

  private static UcpParams contextParams(final @Nullable NetworkDevices devices) {
    final UcpParams params =
        new UcpParams()
            .requestRmaFeature()
            .requestWakeupFeature()
            .setMtWorkersShared(true)
            .setConfig("PROTO_ENABLE", "y"); // The older protocols write GPU memory by the CPU.
    if (devices != null) {
      devices.settings(System.getenv()).forEach(params::setConfig);
    }
    return params;
  }

  private static UcpWorkerParams workerParams() {
    return new UcpWorkerParams()
        .requestThreadSafety()
        .requestWakeupRX()
        .requestWakeupTX()
        .requestWakeupRMA();
  }

  private static byte[] bytes(final ByteBuffer buffer) {
    final byte[] bytes = new byte[buffer.remaining()];
    buffer.duplicate().get(bytes);
    return bytes;
  }

  @Override
  public String describe() {
    return describe(version, memoryTypes);
  }

  @Override
  public String library() {
    return library(version, memoryTypes);
  }

  private static String describe(final LibucxVersion version, final long memoryTypes) {
    final var source = NativeLibs.class.getProtectionDomain().getCodeSource();
    return "jucx of "
        + (source == null ? "an unknown place" : source.getLocation().getPath())
        + ", "
        + library(version, memoryTypes);
  }

  private static String library(final LibucxVersion version, final long memoryTypes) {
    return "libucx "
        + version
        + (knowsGpuMemory(memoryTypes) ? " with CUDA" : " without CUDA")
        + (saysMemory() ? "" : ", too old for GPU memory");
  }

  @Override
  public long events() {
    return worker.events();
  }

  @Override
  public byte[] address() {
    return address;
  }

  @Override
  public boolean rdma() {
    return RdmaDevices.any();
  }

  private static boolean knowsGpuMemory(final long memoryTypes) {
    return UcsConstants.MEMORY_TYPE.isMemTypeSupported(memoryTypes, GPU);
  }

  private static boolean saysMemory() {
    try {
      Class.forName(PARAMS, false, JucxEngine.class.getClassLoader());
      return true;
    } catch (final ClassNotFoundException e) {
      return false;
    }
  }

  @Override
  public boolean reachesGpuMemory() {
    return knowsGpuMemory(memoryTypes) && saysMemory();
  }

  @Override
  public synchronized UcxMemory register(final Tier kind, final long from, final long bytes) {
    if (state != Lifecycle.OPEN) {
      throw new UcxException("UCX has been closed: this executor is shutting down", null);
    }
    try {
      final JucxMemory memory =
          new JucxMemory(
              context.memoryMap(
                  new UcpMemMapParams()
                      .setAddress(from)
                      .setLength(bytes)
                      .setMemoryType(kind == Tier.DEVICE ? GPU : HOST)),
              memories::remove);
      memories.add(memory);
      return memory;
    } catch (final RuntimeException e) {
      throw new UcxException(
          Message.of("UCX cannot register " + bytes + " bytes of memory").because(e), e);
    }
  }

  @Override
  public UcxEndpoint connect(final byte[] peer, final Consumer<String> onFailure) {
    return worker.call(
        "connect to a peer",
        () -> {
          final JucxEndpoint endpoint = new JucxEndpoint(worker, onFailure, endpoints::remove);
          endpoint.open(peer);
          endpoints.add(endpoint);
          return endpoint;
        });
  }

  @Override
  public void wake() {
    worker.wakeIfAsleep();
  }

  @Override
  public int pending() {
    return worker.pending();
  }

  @Override
  public synchronized boolean end() {
    if (state == Lifecycle.OPEN) {
      become(Lifecycle.CLOSING);
      if (worker.close(() -> endpoints.forEach(JucxEndpoint::disconnect))) {
        become(Lifecycle.CLOSED);
        memories.forEach(JucxMemory::close);
        context.close();
      }
    }
    return state == Lifecycle.CLOSED;
  }

  @GuardedBy("this")
  private void become(final Lifecycle next) {
    state = Lifecycle.TRANSITIONS.go(state, next, "UCX");
  }

  /**
   * Removes the copy of the native library that jucx loads. jucx itself removes it only when the
   * JVM ends in good order, and a killed executor does not. Nobody needs it once it is loaded,
   * because the mapping outlives the file.
   */
  private static final class LibraryCopy {
    private static final Logger LOG = LoggerFactory.getLogger(LibraryCopy.class);
    private static final Path MAPPINGS = Path.of("/proc/self/maps");
    private static final Pattern FOLDER = Pattern.compile("jucx\\d+");
    private static final Pattern FILE = Pattern.compile("libjucx\\w*\\.so");

    private LibraryCopy() {}

    /** Removes what this process has loaded, and nobody else's. Does not fail. */
    static void remove() {
      try {
        final Path temporary = Path.of(System.getProperty("java.io.tmpdir")).toRealPath();
        for (final Path file : loaded()) {
          final Path folder = file.getParent();
          if (folder != null
              && temporary.equals(folder.getParent())
              && FOLDER.matcher(folder.getFileName().toString()).matches()) {
            Files.deleteIfExists(file);
            Files.deleteIfExists(folder);
          }
        }
      } catch (final IOException e) {
        LOG.debug("jucx's copy of its library stays until this process ends", e);
      }
    }

    private static List<Path> loaded() throws IOException {
      try (var lines = Files.lines(MAPPINGS)) {
        return lines
            .filter(line -> line.indexOf('/') >= 0)
            .map(line -> Path.of(line.substring(line.indexOf('/'))))
            .filter(file -> file.getNameCount() > 2)
            .filter(file -> FILE.matcher(file.getFileName().toString()).matches())
            .distinct()
            .toList();
      }
    }
  }

  /** A version of libucx, such as that which this process has loaded. Immutable. */
  record LibucxVersion(int major, int minor, int patch) {

    /**
     * The first one that is used. Before it, gets of endpoints that handle errors are emulated by
     * the newer protocols, and the older ones end those below some 945 bytes in a copy by the CPU,
     * which ends the process if it may not touch the memory.
     */
    private static final LibucxVersion OLDEST = new LibucxVersion(1, 19, 0);

    private static final Comparator<LibucxVersion> ORDER =
        Comparator.comparingInt(LibucxVersion::major).thenComparingInt(LibucxVersion::minor);

    /**
     * The one that jucx has loaded, which it must have.
     *
     * @throws OldLibucxException if it is too old
     */
    static LibucxVersion loaded() {
      NativeLibrary.require();
      final int version = NativeLibrary.libucpVersion();
      final LibucxVersion loaded =
          new LibucxVersion(version >> 16, version >> 8 & 0xff, version & 0xff);
      loaded.check();
      return loaded;
    }

    /**
     * Refuses one that is too old.
     *
     * @throws OldLibucxException if it is
     */
    void check() {
      if (ORDER.compare(this, OLDEST) < 0) {
        throw new OldLibucxException(
            "libucx "
                + this
                + " is older than 1.19, with which gets of GPU memory can end an executor: blocks"
                + " of other nodes are sent over Spark's connections");
      }
    }

    @Override
    public String toString() {
      return major + "." + minor + "." + patch;
    }
  }

  /** Registered memory and its packed key. */
  static final class JucxMemory implements UcxMemory {
    private final UcpMemory memory;
    private final byte[] key;
    private final Consumer<JucxMemory> onClose;
    private boolean closed;

    /** Takes the registration over. */
    JucxMemory(final UcpMemory memory, final Consumer<JucxMemory> onClose) {
      this.memory = memory;
      this.onClose = onClose;
      try (Undo undo = new Undo(memory::deregister)) {
        key = undo.keep(bytes(memory.getRemoteKeyBuffer()));
      }
    }

    @Override
    public byte[] key() {
      return key;
    }

    /** Gets into this memory. UCX takes it for host memory unless each request says what it is. */
    void get(
        final UcpEndpoint from,
        final UcpRemoteKey key,
        final long remoteAddress,
        final long localAddress,
        final long bytes,
        final UcxCallback request) {
      from.getNonBlocking(
          remoteAddress,
          key,
          localAddress,
          bytes,
          request,
          new UcpRequestParams().setMemoryHandle(memory).setMemoryType(JucxEngine.GPU));
    }

    @Override
    public synchronized void close() {
      if (!closed) {
        closed = true;
        memory.deregister();
        onClose.accept(this);
      }
    }
  }

  /** The life cycle of an owner of UCX objects. */
  enum Lifecycle {
    /** At work. */
    OPEN,

    /**
     * Nothing more is taken. It stays so if the thread that drives UCX does not end: what that may
     * touch is not freed then.
     */
    CLOSING,

    /** The thread has ended; what it used is freed. */
    CLOSED;

    static final Transitions<Lifecycle> TRANSITIONS =
        new Transitions<>(Map.of(OPEN, Set.of(CLOSING), CLOSING, Set.of(CLOSED)));
  }
}
