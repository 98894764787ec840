package ai.rapids.cudf;

/** As cudf's, for the types that tests use. */
public final class DType {
  public static final DType INT8 = new DType(DTypeEnum.INT8);
  public static final DType INT16 = new DType(DTypeEnum.INT16);
  public static final DType INT32 = new DType(DTypeEnum.INT32);
  public static final DType INT64 = new DType(DTypeEnum.INT64);
  public static final DType FLOAT64 = new DType(DTypeEnum.FLOAT64);
  public static final DType BOOL8 = new DType(DTypeEnum.BOOL8);
  public static final DType STRING = new DType(DTypeEnum.STRING);
  public static final DType LIST = new DType(DTypeEnum.LIST);
  public static final DType STRUCT = new DType(DTypeEnum.STRUCT);
  private static final DType[] ALL = {
    INT8, INT16, INT32, INT64, FLOAT64, BOOL8, STRING, LIST, STRUCT
  };

  private final DTypeEnum id;

  /** As cudf's. */
  public enum DTypeEnum {
    INT8(1, Byte.BYTES),
    INT16(2, Short.BYTES),
    INT32(3, Integer.BYTES),
    INT64(4, Long.BYTES),
    FLOAT64(10, Double.BYTES),
    BOOL8(11, Byte.BYTES),
    STRING(23, 0),
    LIST(24, 0),
    STRUCT(28, 0);

    private final int nativeId;
    private final int bytes;

    DTypeEnum(final int nativeId, final int bytes) {
      this.nativeId = nativeId;
      this.bytes = bytes;
    }

    public int getNativeId() {
      return nativeId;
    }
  }

  private DType(final DTypeEnum id) {
    this.id = id;
  }

  static DType ofNative(final int nativeId) {
    for (final DType type : ALL) {
      if (type.id.nativeId == nativeId) {
        return type;
      }
    }
    throw new IllegalArgumentException("no type has the number " + nativeId);
  }

  public DTypeEnum getTypeId() {
    return id;
  }

  public int getSizeInBytes() {
    return id.bytes;
  }

  public boolean isNestedType() {
    return this == LIST || this == STRUCT;
  }

  @Override
  public String toString() {
    return id.toString();
  }
}
