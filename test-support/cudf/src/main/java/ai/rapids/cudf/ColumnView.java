package ai.rapids.cudf;

/** As cudf's. */
public class ColumnView {
  private final Column column;

  ColumnView(final Column column) {
    this.column = column;
  }

  Column column() {
    return column;
  }

  public final DType getType() {
    return column.type().getType();
  }

  public long getRowCount() {
    return column.rows();
  }

  public long getNullCount() {
    return column.nulls();
  }
}
