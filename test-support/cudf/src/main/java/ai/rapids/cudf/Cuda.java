package ai.rapids.cudf;

/** As cudf's. */
public class Cuda {
  Cuda() {}

  public static CudaMemInfo memGetInfo() {
    return new CudaMemInfo(FakeGpu.free(), FakeGpu.total());
  }
}
