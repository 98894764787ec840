package io.zerohop.device.cuda;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import jcuda.Pointer;
import jcuda.driver.CUdevice_attribute;
import jcuda.driver.CUfunction;
import jcuda.driver.CUfunction_attribute;
import jcuda.driver.CUmodule;
import jcuda.driver.CUstream;
import jcuda.driver.JCudaDriver;
import org.jspecify.annotations.Nullable;

/**
 * The kernels of {@code src/main/cuda}, loaded into one context. They were compiled with the jar:
 * nothing is compiled here unless the GPU is newer than the jar. Immutable and thread safe.
 */
final class Kernels {
  static final String RESOURCE = "/io/zerohop/device/lib/zerohop.fatbin";

  /** From this compute capability on there is a bulk copy engine. */
  private static final int FIRST_WITH_BULK = 90;

  private static final int SHAPE_WORDS = 7;

  /** Threads of a warp on every GPU so far. */
  private static final int WARP_THREADS = 32;

  private final CudaContext context;

  @SuppressWarnings("unused") // Kept alive.
  private final ByteBuffer image;

  private final @Nullable Copier bulk;
  private final Copier loads;
  private final Copier splice;
  private final Copier rowHash;
  private final Copier checksums;
  private final int multiprocessors;

  /** One of the kernels that copy, and the shape that its thread blocks must have. */
  record Copier(CUfunction function, int threads, int sharedBytes) {
    /** Warps of a thread block; each takes a range of the list. */
    int warps() {
      return threads / WARP_THREADS;
    }
  }

  private Kernels(
      final CudaContext context,
      final ByteBuffer image,
      final @Nullable Copier bulk,
      final Copier loads,
      final Copier splice,
      final Copier rowHash,
      final Copier checksums) {
    this.context = context;
    this.image = image;
    this.bulk = bulk;
    this.loads = loads;
    this.splice = splice;
    this.rowHash = rowHash;
    this.checksums = checksums;
    this.multiprocessors =
        context.attribute(CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  }

  /** Returns why this jar has no kernels, if it has none. */
  static @Nullable Message absence() {
    return Kernels.class.getResource(RESOURCE) != null
        ? null
        : Message.of("this jar was built without nvcc and has no GPU kernels")
            .remedy("build it where nvcc is on the PATH, or CUDA_HOME names a CUDA toolkit");
  }

  static Kernels load(final CudaContext context) {
    final CUmodule module = new CUmodule();
    // The driver may read the image when a kernel is first used: it stays, outside the heap.
    final ByteBuffer image = read(context);
    CudaStatus.check(
        JCudaDriver.cuModuleLoadDataEx(
            module, Pointer.to(image), 0, new int[0], Pointer.to(new int[0])),
        "cuModuleLoadDataEx",
        context.toString());
    final int[] shapes = shapes(module, context);
    final Copier loads =
        new Copier(function(module, "zerohop_gather_loads", context), shapes[2], shapes[3]);
    final Copier splice = new Copier(function(module, "zerohop_splice", context), shapes[4], 0);
    final Copier rowHash = new Copier(function(module, "zerohop_row_hash", context), shapes[5], 0);
    final Copier checksums =
        new Copier(function(module, "zerohop_checksums", context), shapes[6], 0);
    if (context.computeCapability() < FIRST_WITH_BULK) {
      return new Kernels(context, image, null, loads, splice, rowHash, checksums);
    }
    final CUfunction bulk = function(module, "zerohop_gather_bulk", context);
    CudaStatus.check(
        JCudaDriver.cuFuncSetAttribute(
            bulk, CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shapes[1]),
        "cuFuncSetAttribute",
        context.toString());
    return new Kernels(
        context, image, new Copier(bulk, shapes[0], shapes[1]), loads, splice, rowHash, checksums);
  }

  private static ByteBuffer read(final CudaContext context) {
    final Message absence = absence();
    if (absence != null) {
      throw new ZerohopException(Category.FALLBACK, absence.at(context.toString()));
    }
    try (InputStream in = Kernels.class.getResourceAsStream(RESOURCE)) {
      final byte[] bytes = in.readAllBytes();
      return ByteBuffer.allocateDirect(bytes.length).put(0, bytes);
    } catch (final IOException e) {
      throw new ZerohopException(Category.FALLBACK, context + ": cannot read " + RESOURCE, e);
    }
  }

  private static CUfunction function(
      final CUmodule module, final String name, final CudaContext context) {
    final CUfunction function = new CUfunction();
    CudaStatus.check(
        JCudaDriver.cuModuleGetFunction(function, module, name), name, context.toString());
    return function;
  }

  private static int[] shapes(final CUmodule module, final CudaContext context) {
    final Addresses.Result address = new Addresses.Result();
    final long[] bytes = new long[1];
    CudaStatus.check(
        JCudaDriver.cuModuleGetGlobal(address, bytes, module, "zerohop_shapes"),
        "cuModuleGetGlobal",
        context.toString());
    final int[] shapes = new int[SHAPE_WORDS];
    CudaStatus.check(
        JCudaDriver.cuMemcpyDtoH(Pointer.to(shapes), address, (long) SHAPE_WORDS * Integer.BYTES),
        "cuMemcpyDtoH",
        context.toString());
    return shapes;
  }

  int multiprocessors() {
    return multiprocessors;
  }

  /** The kernel that is the faster one on this GPU. */
  Copier best() {
    return bulk == null ? loads : bulk;
  }

  /** The kernel that runs on every GPU. */
  Copier plain() {
    return loads;
  }

  /** Copies, with what has to be waited for before and raised behind them. */
  void launchCopy(
      final Copier copier, final CUstream stream, final int blocks, final Pointer arguments) {
    launch(copier.function, stream, blocks, copier.threads, copier.sharedBytes, arguments);
  }

  /** Puts columns together; {@code gather} is the struct without copies. */
  void launchSplice(
      final CUstream stream, final int blocks, final Pointer gather, final Pointer work) {
    launch(splice.function, stream, blocks, splice.threads, 0, Pointer.to(gather, work));
  }

  /** Hashes rows; {@code gather} is the struct without copies. */
  void launchRowHash(
      final CUstream stream, final int blocks, final Pointer gather, final Pointer work) {
    launch(rowHash.function, stream, blocks, rowHash.threads, 0, Pointer.to(gather, work));
  }

  /**
   * Computes checksums; {@code gather} is the struct without copies.
   *
   * @param mostBlocks thread blocks at a time
   * @param pieces each keeps a warp busy
   */
  void launchChecksums(
      final CUstream stream,
      final int mostBlocks,
      final int pieces,
      final Pointer gather,
      final Pointer work) {
    final int wanted = Math.max(1, (pieces + checksums.warps() - 1) / checksums.warps());
    launch(
        checksums.function,
        stream,
        Math.min(mostBlocks, wanted),
        checksums.threads,
        0,
        Pointer.to(gather, work));
  }

  /** Waits and raises alone: one warp, hardly any room on the GPU. */
  void launchSignal(final CUstream stream, final Pointer arguments) {
    launch(loads.function, stream, 1, WARP_THREADS, 0, arguments);
  }

  private void launch(
      final CUfunction function,
      final CUstream stream,
      final int blocks,
      final int threads,
      final int sharedBytes,
      final Pointer arguments) {
    CudaStatus.check(
        JCudaDriver.cuLaunchKernel(
            function, blocks, 1, 1, threads, 1, 1, sharedBytes, stream, arguments, null),
        "cuLaunchKernel",
        context.toString());
  }

  /** Nanoseconds as the kernels' clock counts them. */
  static long limitNanos(final java.time.Duration limit) {
    return Math.max(0, Math.min(limit.toMillis(), TimeUnit.DAYS.toMillis(365))) * 1_000_000L;
  }
}
