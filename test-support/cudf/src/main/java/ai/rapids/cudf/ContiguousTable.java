package ai.rapids.cudf;

import java.nio.ByteBuffer;

/** As cudf's: a packed table. */
public final class ContiguousTable implements AutoCloseable {
  private final int rows;
  private final ByteBuffer metadata;

  /** Null if the table takes no memory. */
  private DeviceMemoryBuffer memory;

  ContiguousTable(final PackedLayout layout) {
    rows = layout.rows();
    metadata = layout.metadata();
    memory = layout.put();
  }

  public long getRowCount() {
    return rows;
  }

  public DeviceMemoryBuffer getBuffer() {
    return memory;
  }

  public ByteBuffer getMetadataDirectBuffer() {
    return metadata;
  }

  @Override
  public void close() {
    if (memory != null) {
      memory.close();
      memory = null;
    }
  }
}
