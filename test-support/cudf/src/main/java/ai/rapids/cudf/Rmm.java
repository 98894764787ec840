package ai.rapids.cudf;

/** As cudf's: a pool that may take all of the GPU, and takes what it needs. */
public class Rmm {
  Rmm() {}

  public static long getPoolSize() {
    return FakeGpu.total();
  }

  public static boolean isPoolingEnabled() {
    return true;
  }

  public static long getTotalBytesAllocated() {
    GpuQueue.ofThread().run();
    return FakeGpu.taken();
  }
}
