package io.zerohop.device.cuda;

import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.exchange.OpaqueHandle;
import java.util.function.Consumer;
import jcuda.driver.JCudaDriver;

/**
 * An allocation that others made, shared by a legacy IPC handle: the exporter's whole allocation,
 * whatever part of it was meant. The exporter's side owns none of the memory; closing it changes
 * nothing but our books.
 */
final class IpcSegment implements Segment {
  private final CudaContext context;
  private final Consumer<Object> onClose;
  private final long address;
  private final long bytes;
  private final byte[] handle;
  private boolean closed;

  private IpcSegment(
      final CudaContext context,
      final Consumer<Object> onClose,
      final long address,
      final long bytes,
      final byte[] handle) {
    this.context = context;
    this.onClose = onClose;
    this.address = address;
    this.bytes = bytes;
    this.handle = handle;
  }

  /**
   * Finds the allocation around an address of this process.
   *
   * @throws ZerohopException (FALLBACK) if it cannot be exported
   */
  static IpcSegment around(
      final CudaContext context, final Consumer<Object> onClose, final long address) {
    context.enter();
    final Addresses.Result base = new Addresses.Result();
    final long[] bytes = new long[1];
    CudaStatus.check(
        JCudaDriver.cuMemGetAddressRange(base, bytes, Addresses.device(address)),
        "cuMemGetAddressRange",
        context.toString());
    final byte[] handle = new byte[DriverMemory.IPC_HANDLE_BYTES];
    final int status = CudaStatus.observe(DriverMemory.ipcExport(base.value(), handle));
    if (status != CudaStatus.SUCCESS) {
      throw new ZerohopException(
          Category.FALLBACK,
          context
              + ": memory at "
              + Long.toHexString(address)
              + " cannot be shared ("
              + CudaStatus.name(status)
              + "), as memory of a cudaMallocAsync pool never can; copy it into a segment");
    }
    return new IpcSegment(context, onClose, base.value(), bytes[0], handle);
  }

  /** Maps a peer's allocation. */
  static IpcSegment map(
      final CudaContext context,
      final Consumer<Object> onClose,
      final SegmentHandle handle,
      final String owner) {
    context.enter();
    final long[] result = new long[1];
    final int status = CudaStatus.observe(DriverMemory.ipcOpen(handle.opaque(), result));
    if (status != CudaStatus.SUCCESS) {
      throw new ZerohopException(
          Category.FALLBACK,
          context + ": an IPC handle of " + owner + " was refused: " + CudaStatus.name(status));
    }
    return new IpcSegment(context, onClose, result[0], handle.bytes(), null);
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
    return handle != null;
  }

  @Override
  public SegmentHandle export() {
    if (!owned()) {
      throw new IllegalStateException(this + " was mapped from a peer and cannot be exported");
    }
    return new OpaqueHandle(SegmentHandle.Kind.CUDA_IPC, bytes, handle);
  }

  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    onClose.accept(this);
    if (!owned()) {
      context.enter();
      CudaStatus.check(DriverMemory.ipcClose(address), "cuIpcCloseMemHandle", context.toString());
    }
  }

  @Override
  public String toString() {
    return "IPC segment of " + bytes + " bytes on " + context;
  }
}
