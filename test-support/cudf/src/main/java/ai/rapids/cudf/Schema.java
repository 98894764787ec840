package ai.rapids.cudf;

import ai.rapids.cudf.HostColumnVector.BasicType;
import ai.rapids.cudf.HostColumnVector.DataType;
import ai.rapids.cudf.HostColumnVector.ListType;
import ai.rapids.cudf.HostColumnVector.StructType;
import java.util.ArrayList;
import java.util.List;

/** As cudf's. */
public final class Schema {
  private final List<DataType> columns;

  private Schema(final List<DataType> columns) {
    this.columns = columns;
  }

  /** Types of the columns; nulls may be in all of them. */
  public List<DataType> columns() {
    return columns;
  }

  public static Builder builder() {
    return new Builder(DType.STRUCT);
  }

  /** As cudf's. */
  public static final class Builder {
    private final DType type;
    private final List<Builder> children = new ArrayList<>();

    private Builder(final DType type) {
      this.type = type;
    }

    public Builder addColumn(final DType of, final String name) {
      final Builder child = new Builder(of);
      children.add(child);
      return child;
    }

    public Schema build() {
      return new Schema(children.stream().map(Builder::dataType).toList());
    }

    private DataType dataType() {
      if (type == DType.LIST) {
        return new ListType(true, children.get(0).dataType());
      }
      return type == DType.STRUCT
          ? new StructType(true, children.stream().map(Builder::dataType).toList())
          : new BasicType(true, type);
    }
  }
}
