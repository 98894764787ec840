package io.zerohop.workload;

import io.trino.tpcds.column.Column;
import io.trino.tpcds.column.ColumnType;
import java.math.BigDecimal;
import java.time.LocalDate;
import java.util.Map;
import java.util.function.Function;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;

/**
 * How the generator's texts become a column's values. Keys are {@code int} and characters {@code
 * string}, without the blanks that would pad them.
 */
enum TpcdsColumn {
  NUMBER(Integer::valueOf),
  AMOUNT(BigDecimal::new),
  DAY(LocalDate::parse),
  TEXT(text -> text);

  /** What Spark's queries call otherwise. */
  private static final Map<String, String> NAMES =
      Map.of(
          "c_last_review_date_sk", "c_last_review_date",
          "p_response_targe", "p_response_target",
          "s_tax_precentage", "s_tax_percentage");

  private final Function<String, Object> parse;

  TpcdsColumn(final Function<String, Object> parse) {
    this.parse = parse;
  }

  static TpcdsColumn of(final Column column) {
    return switch (column.getType().getBase()) {
      case IDENTIFIER, INTEGER -> NUMBER;
      case DECIMAL -> AMOUNT;
      case DATE -> DAY;
      case VARCHAR, CHAR, TIME -> TEXT;
    };
  }

  /** The column as Spark knows it. */
  static StructField field(final Column column) {
    return DataTypes.createStructField(
        NAMES.getOrDefault(column.getName(), column.getName()),
        of(column).type(column.getType()),
        true);
  }

  /** The value. An empty text is null, since the files of {@code dsdgen} cannot tell them apart. */
  Object value(final String text) {
    return text == null || text.isEmpty() ? null : parse.apply(text);
  }

  private DataType type(final ColumnType type) {
    return switch (this) {
      case NUMBER -> DataTypes.IntegerType;
      case AMOUNT ->
          DataTypes.createDecimalType(
              type.getPrecision().orElseThrow(), type.getScale().orElseThrow());
      case DAY -> DataTypes.DateType;
      case TEXT -> DataTypes.StringType;
    };
  }
}
