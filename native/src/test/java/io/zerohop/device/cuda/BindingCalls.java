package io.zerohop.device.cuda;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import jcuda.LibUtils;
import jcuda.Pointer;
import jcuda.driver.CUcontext;
import jcuda.driver.CUdevice;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUevent;
import jcuda.driver.CUfunction;
import jcuda.driver.CUmodule;
import jcuda.driver.CUstream;
import jcuda.driver.CUuuid;
import jcuda.driver.JCudaDriver;

/** A JVM that makes every call of JCuda's that Zerohop makes, and says what came of each. */
public final class BindingCalls {
  private static final int WORD = 0x80000001;
  private static final long STRUCT_BYTES = 16;

  private final CUdevice device = new CUdevice();
  private final CUcontext context = new CUcontext();
  private final CUstream stream = new CUstream();
  private final CUevent event = new CUevent();
  private final CUmodule module = new CUmodule();
  private final CUfunction function = new CUfunction();

  private BindingCalls() {}

  public static void main(final String[] arguments) {
    LibUtils.loadDriver();
    JCudaDriver.setExceptionsEnabled(false);
    final BindingCalls calls = new BindingCalls();
    calls.devices();
    calls.streams();
    calls.kernels();
    calls.deviceMemory();
    calls.hostMemory();
    calls.end();
  }

  private static void say(final int status, final Object... results) {
    System.out.println("  = " + status + " " + Arrays.deepToString(results));
  }

  private void devices() {
    say(JCudaDriver.cuInit(1));
    say(JCudaDriver.cuInit(0));
    final int[] count = new int[1];
    say(JCudaDriver.cuDeviceGetCount(count), count);
    say(JCudaDriver.cuDeviceGet(device, 2));
    say(JCudaDriver.cuDeviceGet(device, 1));
    final int[] value = new int[1];
    say(JCudaDriver.cuDeviceGetAttribute(value, 75, device), value);
    final CUuuid uuid = new CUuuid();
    say(JCudaDriver.cuDeviceGetUuid(uuid, device), HexFormat.of().formatHex(uuid.bytes));
    final long[] bytes = new long[1];
    say(JCudaDriver.cuDeviceTotalMem(bytes, device), bytes);
    say(JCudaDriver.cuDevicePrimaryCtxRetain(context, device));
    say(JCudaDriver.cuCtxSetCurrent(context));
  }

  private void streams() {
    say(JCudaDriver.cuStreamCreate(stream, 1));
    say(JCudaDriver.cuEventCreate(event, 2));
    say(JCudaDriver.cuEventRecord(event, stream));
    say(JCudaDriver.cuEventRecord(event, JCudaDriver.CU_STREAM_PER_THREAD));
    say(JCudaDriver.cuEventQuery(event));
    say(JCudaDriver.cuStreamWaitEvent(stream, event, 0));
    say(JCudaDriver.cuStreamQuery(stream));
    say(JCudaDriver.cuStreamQuery(stream));
    say(JCudaDriver.cuStreamWriteValue32(stream, Addresses.device(0x1234567890L), WORD, 1));
  }

  private void kernels() {
    final byte[] image = "image".getBytes(StandardCharsets.US_ASCII);
    final ByteBuffer direct = ByteBuffer.allocateDirect(image.length + 1).put(0, image);
    final Pointer none = Pointer.to(new int[0]);
    say(JCudaDriver.cuModuleLoadDataEx(module, Pointer.to(direct), 0, new int[0], none));
    say(JCudaDriver.cuModuleGetFunction(function, module, "zerohop_gather_loads"));
    final Addresses.Result address = new Addresses.Result();
    final long[] bytes = new long[1];
    say(
        JCudaDriver.cuModuleGetGlobal(address, bytes, module, "zerohop_shapes"),
        address.value(),
        bytes);
    final int[] shapes = new int[3];
    say(JCudaDriver.cuMemcpyDtoH(Pointer.to(shapes), address, 12), shapes);
    say(JCudaDriver.cuFuncSetAttribute(function, 8, 50_000));
    say(launch(Pointer.to(struct(1)), 1));
    say(launch(Pointer.to(struct(2), struct(3)), 2));
  }

  /** As GatherArguments makes one. */
  private static Pointer struct(final int number) {
    final byte[] array = new byte[(int) STRUCT_BYTES];
    ByteBuffer.wrap(array).order(ByteOrder.nativeOrder()).putLong(0, number).putLong(8, -number);
    return Pointer.to(array);
  }

  private int launch(final Pointer arguments, final int count) {
    return JCudaDriver.cuLaunchKernel(function, 7, 1, 1, 256, 1, 1, count, stream, arguments, null);
  }

  private void deviceMemory() {
    final Addresses.Result address = new Addresses.Result();
    say(JCudaDriver.cuMemAlloc(address, 3L << 32), address.value());
    say(JCudaDriver.cuMemsetD8(address, (byte) -1, 3L << 32));
    final CUdeviceptr further = address.withByteOffset(64);
    say(JCudaDriver.cuMemsetD8Async(further, (byte) 5, 8, stream));
    say(JCudaDriver.cuMemcpyDtoDAsync(further, Addresses.device(0x99), 5L << 32, stream));
    say(JCudaDriver.cuMemFree(address));
  }

  private void hostMemory() {
    final Addresses.HostPointer pinned = new Addresses.HostPointer();
    say(JCudaDriver.cuMemHostAlloc(pinned, 16, 3), pinned.value() != 0);
    final ByteBuffer buffer = pinned.getByteBuffer(0, 16);
    say(
        JCudaDriver.cuMemcpyDtoHAsync(
            Addresses.host(pinned.value()), Addresses.device(0x77), 8, stream),
        buffer.isDirect(),
        buffer.capacity(),
        buffer.getLong(0));
    say(JCudaDriver.cuMemFreeHost(pinned));
    final Pointer range = Addresses.hostRange(0x4000000);
    say(JCudaDriver.cuMemHostRegister(range, 1L << 33, 3));
    final Addresses.Result seen = new Addresses.Result();
    say(JCudaDriver.cuMemHostGetDevicePointer((CUdeviceptr) seen, range, 0), seen.value());
    say(JCudaDriver.cuMemHostUnregister(Addresses.hostRange(0x4000000)));
  }

  private void end() {
    say(JCudaDriver.cuEventDestroy(event));
    say(JCudaDriver.cuStreamDestroy(stream));
  }
}
