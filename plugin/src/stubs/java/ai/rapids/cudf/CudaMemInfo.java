package ai.rapids.cudf;

/** As {@link MemoryBuffer}. */
public class CudaMemInfo {
  public final long free;
  public final long total;

  CudaMemInfo(final long free, final long total) {
    this.free = free;
    this.total = total;
  }
}
