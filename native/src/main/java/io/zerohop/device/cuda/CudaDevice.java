package io.zerohop.device.cuda;

import io.zerohop.device.CopyStream;
import io.zerohop.device.Device;
import io.zerohop.device.Device.FabricReach;
import io.zerohop.device.DeviceMemoryException;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.Message;
import io.zerohop.device.OpenResources;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.Signal;
import io.zerohop.device.Topology;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import jcuda.Pointer;
import jcuda.driver.CUdevice_attribute;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.JCudaDriver;
import org.jspecify.annotations.Nullable;

/**
 * One GPU as a {@link Device}. Addresses are those of its memory in this process, and of peers'
 * memory that it has mapped, on whatever GPU of the node that lies.
 *
 * <p>Segments are exported as file descriptors. Their memory lives while any process holds a
 * descriptor or a mapping, also after its owner was killed. Within an NVLink fabric they have
 * fabric handles besides, which hold nothing.
 */
public final class CudaDevice implements Device {
  /** What the driver calls {@code CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED}. */
  private static final int RDMA_WITH_VMM =
      CUdevice_attribute.CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED;

  /** {@code CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST}. */
  private static final int FLUSHED_BY_HOST = 1;

  /** {@code CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER}. */
  private static final int ORDERED_FOR_OWNER = 100;

  /** SMs that the copies of one stream may occupy unless told otherwise. */
  public static final int DEFAULT_MULTIPROCESSORS = 24;

  private final CudaContext context;
  private final HostAccess host;
  private final Kernels.Copier copier;
  private final int multiprocessors;
  private final long granularity;
  private final boolean rdma;
  private final AdapterWrites adapterWrites;
  private final FabricReach fabric;
  private final CudaSegment.Handles handles;
  private final OpenResources open;
  private final AtomicLong nextId = new AtomicLong();

  /**
   * Opens a GPU.
   *
   * @param ordinal its number among those that this process sees
   * @param multiprocessors the most SMs that copies of one stream may occupy
   * @throws ZerohopException (FALLBACK) if there is no driver, no such GPU, or no kernel for it
   */
  public CudaDevice(final int ordinal, final int multiprocessors) {
    this(ordinal, multiprocessors, false, false);
  }

  /**
   * Opens a GPU whose segments are for other nodes of an NVLink fabric, too, where a trial shows
   * that the driver makes such handles and takes them.
   *
   * @throws ZerohopException as {@link #CudaDevice(int, int)} does
   */
  public static CudaDevice inFabric(final int ordinal, final int multiprocessors) {
    return new CudaDevice(ordinal, multiprocessors, false, true);
  }

  /** With the kernel for older GPUs if so wished, which tests have to see on newer ones. */
  CudaDevice(final int ordinal, final int multiprocessors, final boolean plain) {
    this(ordinal, multiprocessors, plain, false);
  }

  private CudaDevice(
      final int ordinal,
      final int multiprocessors,
      final boolean plain,
      final boolean wantsFabric) {
    context = CudaContext.of(ordinal);
    open = new OpenResources(context.toString());
    final Kernels kernels = context.kernels();
    copier = plain ? kernels.plain() : kernels.best();
    context.enter();
    this.multiprocessors = multiprocessors;
    rdma = context.attribute(RDMA_WITH_VMM) != 0;
    adapterWrites =
        adapterWrites(
            context.attribute(
                CUdevice_attribute.CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING),
            context.attribute(
                CUdevice_attribute.CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS));
    fabric =
        wantsFabric
            ? FabricTrial.of(
                FabricTrial.driver(ordinal, rdma, granularity(CudaSegment.Handles.DESCRIPTOR)),
                this::clique)
            : FabricReach.none("not tried (executors do with spark.zerohop.fabric.enabled=true)");
    handles =
        fabric.possible()
            ? CudaSegment.Handles.DESCRIPTOR_AND_FABRIC
            : CudaSegment.Handles.DESCRIPTOR;
    granularity = granularity(handles);
    host = new HostAccess(context);
  }

  private long granularity(final CudaSegment.Handles wanted) {
    final long[] result = new long[1];
    CudaStatus.check(
        DriverMemory.granularity(context.ordinal(), wanted.types(), result),
        "cuMemGetAllocationGranularity",
        context.toString());
    return result[0];
  }

  private String clique() {
    return TopologyReader.read().gpus().stream()
        .filter(gpu -> gpu.uuid().equals(uuid()))
        .map(Topology.Gpu::fabric)
        .findFirst()
        .orElse("");
  }

  /** Why no GPU can be opened with this jar, wherever it is, if that is so. */
  public static @Nullable Message missingKernels() {
    return Kernels.absence();
  }

  @Override
  public void enter() {
    context.enter();
  }

  @Override
  public String name() {
    return "cuda:" + context.ordinal();
  }

  /** Names the physical GPU the same way in every process. */
  public String uuid() {
    return context.uuid();
  }

  /** Where the GPU is on the PCI bus, as sysfs writes it; of a MIG device, where its GPU is. */
  public String pciAddress() {
    return String.format(
        Locale.ROOT,
        "%04x:%02x:%02x.0",
        context.attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID),
        context.attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_PCI_BUS_ID),
        context.attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID));
  }

  /** Whether the driver hands out this GPU's memory as dma-buf, which network cards register. */
  public boolean dmaBufCapable() {
    return context.attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED) != 0;
  }

  /** Whether segments can be registered with a network card. */
  public boolean rdmaCapable() {
    return rdma;
  }

  /**
   * What the driver says of them; 0 of both, which it is where the driver does not know them, says
   * nothing.
   */
  static AdapterWrites adapterWrites(final int ordering, final int flushOptions) {
    if (ordering >= ORDERED_FOR_OWNER) {
      return AdapterWrites.ORDERED;
    }
    return (flushOptions & FLUSHED_BY_HOST) != 0 ? AdapterWrites.FLUSHED : AdapterWrites.UNORDERED;
  }

  @Override
  public AdapterWrites adapterWrites() {
    return adapterWrites;
  }

  @Override
  public void flushAdapterWrites() {
    if (adapterWrites == AdapterWrites.FLUSHED) {
      context.enter();
      CudaStatus.check(
          DriverMemory.flushAdapterWrites(), "cuFlushGPUDirectRDMAWrites", context.toString());
    }
  }

  /** What this GPU is and can do, for a log, as found out when it was opened. */
  public String describe() {
    return context
        + ", compute capability "
        + context.computeCapability() / 10.0
        + ", GPUDirect RDMA "
        + (rdma
            ? "possible, writes " + adapterWrites.name().toLowerCase(Locale.ROOT)
            : "not possible")
        + ", fabric handles "
        + (fabric.possible() ? "in clique " + fabric.clique() : "not used: " + fabric.absence());
  }

  @Override
  public long granularity() {
    return granularity;
  }

  @Override
  public Segment allocate(final long bytes, final PeerAccess access) {
    open.checkOpen();
    if (bytes <= 0) {
      throw new IllegalArgumentException("segment of " + bytes + " bytes");
    }
    if (bytes > Long.MAX_VALUE - granularity) {
      throw new DeviceMemoryException(
          Message.of("no GPU memory for " + bytes + " bytes").at(context.toString()), bytes, null);
    }
    final long rounded = (bytes + granularity - 1) / granularity * granularity;
    final String name = "zerohop-" + nextId.incrementAndGet();
    final CudaSegment segment;
    try {
      segment = CudaSegment.allocate(context, open::remove, name, handles, rdma, rounded);
    } catch (final DeviceMemoryException e) {
      throw new DeviceMemoryException(e.message(), bytes, e);
    }
    open.add(segment);
    boolean done = false;
    try {
      host.zero(segment.address(), rounded); // It may hold what another job left.
      done = true;
      return segment;
    } finally {
      if (!done) {
        segment.close();
      }
    }
  }

  /** Always for writing: it is the importer who chooses its access to GPU memory. */
  @Override
  public Segment map(final SegmentHandle handle, final String owner, final PeerAccess access) {
    try (handle) {
      checkSize(handle, owner);
      final String name = "mapped-" + nextId.incrementAndGet();
      return open.add(CudaSegment.map(context, open::remove, name, owner, handle));
    }
  }

  @Override
  public Segment borrow(final SegmentHandle handle, final String lender) {
    try (handle) {
      checkSize(handle, lender);
      final String name = "borrowed-" + nextId.incrementAndGet();
      return open.add(CudaSegment.borrow(context, open::remove, name, lender, handle));
    }
  }

  private void checkSize(final SegmentHandle handle, final String owner) {
    open.checkOpen();
    if (handle.bytes() <= 0
        || handle.bytes() > Integer.MAX_VALUE
        || handle.bytes() % granularity != 0) {
      throw new ZerohopException(
          Category.FALLBACK,
          Message.of("a segment of " + owner + " was refused")
              .at(context.toString())
              .because("its size of " + handle.bytes() + " bytes is not one of a segment"));
    }
  }

  @Override
  public boolean hostAccessible() {
    return false;
  }

  @Override
  public HostBuffer hostBuffer(final long bytes) {
    open.checkOpen();
    return open.add(PinnedMemory.allocate(context, bytes, open::remove));
  }

  @Override
  public HostBuffer pin(final long address, final long bytes) {
    open.checkOpen();
    return open.add(RegisteredMemory.register(context, address, bytes, open::remove));
  }

  @Override
  public CopyStream openStream(final String name) {
    open.checkOpen();
    return open.add(
        new CudaCopyStream(context, open::remove, name, copier, multiprocessors, false));
  }

  @Override
  public CopyStream openThreadStream(final String name) {
    open.checkOpen();
    return open.add(new CudaCopyStream(context, open::remove, name, copier, multiprocessors, true));
  }

  @Override
  public Signal signal(final Segment segment, final long offset) {
    if (!(segment instanceof CudaSegment ours)) {
      throw new IllegalArgumentException("not a segment of a CUDA device: " + segment);
    }
    return new CudaSignal(ours, host, offset);
  }

  @Override
  public Signal pinnedSignal(final Signal word, final long address) {
    return new PinnedSignal(word, address);
  }

  @Override
  public FabricReach fabric() {
    return fabric;
  }

  @Override
  public int openResources() {
    return open.size();
  }

  @Override
  public void close() {
    if (open.close()) {
      host.close();
    }
  }

  /**
   * A signal word in host memory that the GPU reaches: the host looks at it by a load, kernels over
   * the bus. Thread safe; owns nothing.
   *
   * @param word the same for the host
   * @param address the same as the host's
   */
  private record PinnedSignal(Signal word, long address) implements Signal, DeviceWord {

    @Override
    public int epoch() {
      return word.epoch();
    }

    @Override
    public void raise(final int epoch) {
      word.raise(epoch);
    }

    @Override
    public void abort(final int reason) {
      word.abort(reason);
    }

    @Override
    public void wake() {
      word.wake();
    }

    @Override
    public int aborted() {
      return word.aborted();
    }

    @Override
    public void await(final int epoch, final Duration limit, final BooleanSupplier cancelled) {
      word.await(epoch, limit, cancelled);
    }
  }

  /**
   * Host memory of others that the driver has locked, so that every GPU of this process reaches it
   * at the address that the host uses. Owned by whoever registered it; the memory stays its
   * owner's.
   */
  private static final class RegisteredMemory extends LockedMemory {
    private static final int FLAGS =
        JCudaDriver.CU_MEMHOSTREGISTER_PORTABLE | JCudaDriver.CU_MEMHOSTREGISTER_DEVICEMAP;

    private final long address;

    private RegisteredMemory(
        final CudaContext context,
        final long address,
        final long bytes,
        final Consumer<Object> onClose) {
      super(context, bytes, onClose);
      this.address = address;
    }

    static RegisteredMemory register(
        final CudaContext context,
        final long address,
        final long bytes,
        final Consumer<Object> onClose) {
      context.enter();
      final Pointer host = Addresses.hostRange(address);
      CudaStatus.check(
          JCudaDriver.cuMemHostRegister(host, bytes, FLAGS),
          "cuMemHostRegister",
          context.toString());
      final RegisteredMemory memory = new RegisteredMemory(context, address, bytes, onClose);
      final Addresses.Result seen = new Addresses.Result();
      boolean same = false;
      try {
        CudaStatus.check(
            JCudaDriver.cuMemHostGetDevicePointer((CUdeviceptr) seen, host, 0),
            "cuMemHostGetDevicePointer",
            context.toString());
        same = seen.value() == address;
      } finally {
        if (!same) {
          memory.close();
        }
      }
      if (!same) {
        throw new ZerohopException(
            ZerohopException.Category.RETRY,
            context + " reaches host memory at other addresses than the host does");
      }
      return memory;
    }

    @Override
    public long address() {
      return address;
    }

    @Override
    void unlock() {
      JCudaDriver.cuMemHostUnregister(Addresses.hostRange(address));
    }

    @Override
    public String toString() {
      return "pinned range of " + bytes() + " bytes";
    }
  }

  /** A signal word that kernels reach. */
  interface DeviceWord {

    /** Where the word lies for the GPU. */
    long address();
  }
}
