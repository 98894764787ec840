package io.zerohop.device.cuda;

import io.zerohop.device.Message;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.exchange.OpaqueHandle;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.FdHandle;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * GPU memory made by {@code cuMemCreate}. The owner keeps the allocation's handle to export it, and
 * who has borrowed it keeps the descriptor by which it came. A mapped segment keeps only its
 * mapping, which holds the memory, also when the owner is gone; one that was mapped by a fabric
 * handle holds nothing.
 */
final class CudaSegment implements Segment {
  private static final long NO_HANDLE = 0;
  private static final int NO_DESCRIPTOR = -1;

  /** The handles that memory is made for. */
  enum Handles {
    DESCRIPTOR(DriverMemory.POSIX_FD),
    DESCRIPTOR_AND_FABRIC(DriverMemory.POSIX_FD | DriverMemory.FABRIC);

    private final int types;

    Handles(final int types) {
      this.types = types;
    }

    /** As the driver writes them. */
    int types() {
      return types;
    }
  }

  private final CudaContext context;
  private final Consumer<Object> onClose;
  private final String name;
  private final Handles handles;
  private final long handle;

  /** Of a borrowed segment. */
  private final int descriptor;

  private final long address;
  private final long bytes;
  private volatile boolean closed;

  private CudaSegment(
      final CudaContext context,
      final Consumer<Object> onClose,
      final String name,
      final Handles handles,
      final long handle,
      final int descriptor,
      final long address,
      final long bytes) {
    this.context = context;
    this.onClose = onClose;
    this.name = name;
    this.handles = handles;
    this.handle = handle;
    this.descriptor = descriptor;
    this.address = address;
    this.bytes = bytes;
  }

  /**
   * Allocates and maps. {@code bytes} is a multiple of the granularity. The content is undefined.
   */
  static CudaSegment allocate(
      final CudaContext context,
      final Consumer<Object> onClose,
      final String name,
      final Handles handles,
      final boolean rdma,
      final long bytes) {
    context.enter();
    final long[] result = new long[1];
    CudaStatus.checkAllocation(
        DriverMemory.create(context.ordinal(), handles.types, rdma, bytes, result),
        "cuMemCreate",
        context.toString(),
        bytes);
    final long handle = result[0];
    final int status = DriverMemory.map(context.ordinal(), handle, bytes, result);
    if (status != CudaStatus.SUCCESS) {
      DriverMemory.release(handle);
      CudaStatus.checkAllocation(status, "cuMemMap", context.toString(), bytes);
    }
    return new CudaSegment(
        context, onClose, name, handles, handle, NO_DESCRIPTOR, result[0], bytes);
  }

  /** Maps a peer's memory; the handle stays the caller's. */
  static CudaSegment map(
      final CudaContext context,
      final Consumer<Object> onClose,
      final String name,
      final String owner,
      final SegmentHandle from) {
    return map(context, onClose, name, owner, from, NO_DESCRIPTOR);
  }

  /** The same of memory that a peer lends, which can be exported. */
  static CudaSegment borrow(
      final CudaContext context,
      final Consumer<Object> onClose,
      final String name,
      final String lender,
      final SegmentHandle from) {
    final int descriptor = Descriptor.duplicate(from.fd());
    boolean done = false;
    try {
      final CudaSegment segment = map(context, onClose, name, lender, from, descriptor);
      done = true;
      return segment;
    } finally {
      if (!done) {
        Descriptor.close(descriptor);
      }
    }
  }

  private static CudaSegment map(
      final CudaContext context,
      final Consumer<Object> onClose,
      final String name,
      final String owner,
      final SegmentHandle from,
      final int descriptor) {
    context.enter();
    final long[] result = new long[1];
    final boolean fabric = from.kind() == SegmentHandle.Kind.FABRIC;
    int status =
        CudaStatus.observe(
            fabric
                ? DriverMemory.importFabric(from.opaque(), result)
                : DriverMemory.importDescriptor(from.fd(), DriverMemory.POSIX_FD, result));
    if (status != CudaStatus.SUCCESS) {
      throw refused(
          context,
          owner,
          fabric ? "its fabric handle was not taken" : "its descriptor is not GPU memory",
          status);
    }
    final long handle = result[0];
    status = CudaStatus.observe(DriverMemory.map(context.ordinal(), handle, from.bytes(), result));
    DriverMemory.release(handle);
    if (status != CudaStatus.SUCCESS) {
      throw refused(context, owner, "its " + from.bytes() + " bytes cannot be mapped", status);
    }
    return new CudaSegment(
        context,
        onClose,
        name + " of " + owner,
        Handles.DESCRIPTOR,
        NO_HANDLE,
        descriptor,
        result[0],
        from.bytes());
  }

  /**
   * Whatever the status: what a peer gave decides it, also where it reads like that of a lost
   * context. A fabric handle of zeros gives such a one, and no peer may end this executor.
   */
  private static ZerohopException refused(
      final CudaContext context, final String owner, final String reason, final int status) {
    return new ZerohopException(
        Category.FALLBACK,
        Message.of("a segment of " + owner + " was refused; its blocks are staged")
            .at(context.toString())
            .because(reason + ": " + CudaStatus.name(status)));
  }

  @Override
  public long address() {
    return address;
  }

  @Override
  public long bytes() {
    return bytes;
  }

  @Override
  public boolean owned() {
    return handle != NO_HANDLE;
  }

  @Override
  public synchronized SegmentHandle export() {
    checkOpen();
    if (isBorrowed()) {
      return new FdHandle(Descriptor.duplicate(descriptor), bytes);
    }
    checkOwned();
    context.enter();
    final long[] result = new long[1];
    CudaStatus.check(
        DriverMemory.exportDescriptor(handle, DriverMemory.POSIX_FD, result),
        "cuMemExportToShareableHandle",
        context.toString());
    return new FdHandle((int) result[0], bytes);
  }

  @Override
  public synchronized @Nullable SegmentHandle exportFabric() {
    checkOpen();
    if (isBorrowed()) {
      return null;
    }
    checkOwned();
    if (handles == Handles.DESCRIPTOR) {
      return null;
    }
    context.enter();
    final byte[] bytes = new byte[FabricTrial.HANDLE_BYTES];
    CudaStatus.check(
        DriverMemory.exportFabric(handle, bytes),
        "cuMemExportToShareableHandle",
        context.toString());
    return new OpaqueHandle(SegmentHandle.Kind.FABRIC, this.bytes, bytes);
  }

  private boolean isBorrowed() {
    return descriptor != NO_DESCRIPTOR;
  }

  private void checkOwned() {
    if (!owned()) {
      throw new IllegalStateException(this + " was mapped from a peer and cannot be exported");
    }
  }

  void checkOpen() {
    if (closed) {
      throw new IllegalStateException(this + " is closed");
    }
  }

  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    onClose.accept(this);
    context.enter();
    final int status = DriverMemory.unmap(address, bytes);
    if (owned()) {
      DriverMemory.release(handle);
    }
    if (isBorrowed()) {
      Descriptor.close(descriptor);
    }
    CudaStatus.check(status, "cuMemUnmap", context.toString());
  }

  @Override
  public String toString() {
    return "segment " + name + " of " + bytes + " bytes on " + context;
  }
}
