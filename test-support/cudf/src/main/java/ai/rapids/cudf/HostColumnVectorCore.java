package ai.rapids.cudf;

import org.agrona.UnsafeAccess;

/** As cudf's: a column, or one below another, in memory of the host. */
public class HostColumnVectorCore implements AutoCloseable {
  private final Column column;

  HostColumnVectorCore(final Column column) {
    this.column = column;
  }

  public DType getType() {
    return column.type().getType();
  }

  public long getRowCount() {
    return column.rows();
  }

  public long getNullCount() {
    return column.nulls();
  }

  public boolean isNull(final long row) {
    return column.isNull(row);
  }

  public int getNumChildren() {
    return column.children().size();
  }

  public HostColumnVectorCore getChildColumnView(final int child) {
    return new HostColumnVectorCore(column.children().get(child));
  }

  public long getStartListOffset(final long row) {
    return column.offset(row);
  }

  public long getEndListOffset(final long row) {
    return column.offset(row + 1);
  }

  public final byte getByte(final long row) {
    return UnsafeAccess.UNSAFE.getByte(column.data() + row);
  }

  public final short getShort(final long row) {
    return UnsafeAccess.UNSAFE.getShort(column.data() + Short.BYTES * row);
  }

  public final int getInt(final long row) {
    return UnsafeAccess.UNSAFE.getInt(column.data() + Integer.BYTES * row);
  }

  public final long getLong(final long row) {
    return UnsafeAccess.UNSAFE.getLong(column.data() + Long.BYTES * row);
  }

  public final double getDouble(final long row) {
    return UnsafeAccess.UNSAFE.getDouble(column.data() + Double.BYTES * row);
  }

  public String getJavaString(final long row) {
    return column.text(row);
  }

  @Override
  public void close() {}
}
