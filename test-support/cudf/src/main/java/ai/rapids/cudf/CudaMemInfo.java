package ai.rapids.cudf;

/** As cudf's. */
public class CudaMemInfo {
  public final long free;
  public final long total;

  CudaMemInfo(final long free, final long total) {
    this.free = free;
    this.total = total;
  }
}
