package ai.rapids.cudf;

/** As {@link MemoryBuffer}. */
public final class Schema {
  private Schema() {}
}
