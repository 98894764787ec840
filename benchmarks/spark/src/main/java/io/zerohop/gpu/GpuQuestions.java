package io.zerohop.gpu;

import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.types.DataTypes;

/**
 * Queries that together use every kind of exchange and of column that RAPIDS shuffles, and the
 * tables that they ask: files that the CPU has written, so that both sides begin with the same.
 */
final class GpuQuestions {
  private static final String COLUMNS =
      """
      id,
      cast(pmod(xxhash64(id), 1000) AS int) AS k,
      CASE WHEN id % 11 = 0 THEN NULL ELSE concat('name ', pmod(xxhash64(id, 7), 2500)) END AS s,
      cast(pmod(xxhash64(id, 1), 1000000) / 100 AS decimal(12,2)) AS d,
      cast(pmod(xxhash64(id, 2), 1000000000) AS decimal(38,6)) AS big,
      CASE WHEN id % 13 = 0 THEN NULL ELSE pmod(xxhash64(id, 3), 100000) / 7.0D END AS f,
      id % 3 = 0 AS flag,
      date_add(DATE'2020-01-01', cast(id % 1000 AS int)) AS day,
      timestamp_micros(1600000000000000 + id * 1000003) AS ts
      """;
  private static final String NESTED =
      """
      , CASE WHEN id % 5 = 0 THEN NULL ELSE sequence(1, cast(id % 6 AS int) + 1) END AS arr,
      named_struct('a', cast(id % 17 AS int), 'b', concat('x', id % 19)) AS st,
      array(named_struct('p', id, 'q', array(cast(id AS string), NULL)), NULL) AS deep,
      map(id % 4, concat('v', id % 8)) AS m
      """;

  private GpuQuestions() {}

  /** Writes the tables with the CPU and makes them known by their names. */
  static void prepare(final SparkSession spark, final String folder, final long rows) {
    write(spark, folder, "t", "SELECT " + COLUMNS + " FROM range(" + rows + ")");
    write(spark, folder, "u", "SELECT " + COLUMNS + " FROM range(" + rows / 2 + ", " + rows + ")");
    write(spark, folder, "n", "SELECT " + COLUMNS + NESTED + " FROM range(20000)");
    write(
        spark,
        folder,
        "skewed",
        "SELECT IF(id % 10 < 7, 7, id % 5000) AS k, id AS v FROM range(" + rows + ")");
    spark
        .udf()
        .register(
            "on_cpu",
            (UDF1<String, String>) text -> text == null ? "none" : text + "!",
            DataTypes.StringType);
  }

  /** A hundred more, of a few kinds, some of them with nulls. */
  private static String manyColumns() {
    final StringBuilder columns = new StringBuilder();
    for (int i = 0; i < 100; i++) {
      final String column =
          switch (i % 4) {
            case 0 -> "id * " + (i + 1);
            case 1 -> "IF(id % " + (i + 2) + " = 0, NULL, k + " + i + ")";
            case 2 -> "concat(s, " + i + ")";
            default -> "IF(k % " + i + " < 2, NULL, f)";
          };
      columns.append(", ").append(column).append(" AS c").append(i);
    }
    return columns.toString();
  }

  private static void write(
      final SparkSession spark, final String folder, final String name, final String query) {
    final String path = folder + "/" + name;
    spark.sql(query).repartition(8).write().mode(SaveMode.Overwrite).parquet(path);
    spark.read().parquet(path).createOrReplaceTempView(name);
  }

  /** The queries by their names. */
  static Map<String, String> all() {
    final Map<String, String> all = new LinkedHashMap<>();
    all.put(
        "group_by_string",
        "SELECT s, count(*), sum(d), min(id), max(f), min(day), max(ts) FROM t GROUP BY s");
    all.put("group_by_decimal", "SELECT d, count(*), sum(big), avg(f) FROM t GROUP BY d");
    all.put(
        "group_by_many",
        "SELECT count(*), sum(c), max(m) FROM (SELECT id % 300000 AS g, count(*) AS c, max(id) AS m"
            + " FROM t GROUP BY 1)");
    all.put("group_by_struct", "SELECT st, count(*), sum(d) FROM n GROUP BY st");
    all.put("nested", "SELECT /*+ REPARTITION(13, k) */ * FROM n");
    all.put("nested_round_robin", "SELECT /*+ REPARTITION(7) */ id, arr, st, deep, m FROM n");
    all.put("nested_many_partitions", "SELECT /*+ REPARTITION(700, id) */ * FROM n");
    all.put(
        "nulls_in_some_partitions",
        "SELECT /*+ REPARTITION(40, k) */ k, IF(k % 3 = 0, NULL, s) AS s, IF(k % 5 = 0, NULL, arr)"
            + " AS arr, IF(k % 7 < 5, NULL, st) AS st, IF(k % 2 = 0, NULL, deep) AS deep,"
            + " IF(k > 3, NULL, f) AS f FROM n");
    all.put(
        "every_type",
        "SELECT k, b, sh, fl, flag, day, ts, d5, d, big, hex(bin), size(bins), f, s, ntz FROM"
            + " (SELECT /*+ REPARTITION(90, k) */ k, cast(k % 100 AS tinyint) AS b, cast(k AS"
            + " smallint) AS sh, cast(id AS float) AS fl, flag, day, ts, cast(k AS decimal(5,1)) AS"
            + " d5, d, big, cast(s AS binary) AS bin, array(cast(s AS binary), NULL) AS bins, f, s,"
            + " timestamp_ntz'2020-01-01 00:00:00' AS ntz FROM n)");
    all.put(
        "hundred_columns", "SELECT /*+ REPARTITION(300, k) */ id, k" + manyColumns() + " FROM n");
    all.put("to_one", "SELECT /*+ REPARTITION(1) */ id, s, arr FROM n");
    all.put("round_robin", "SELECT /*+ REPARTITION(9) */ id, k, s, d FROM n");
    for (final String join : new String[] {"INNER", "LEFT", "RIGHT", "FULL"}) {
      all.put(
          join.toLowerCase(java.util.Locale.ROOT) + "_join",
          "SELECT count(*), sum(t.d), sum(u.d), count(t.s), count(u.s), max(u.day) FROM t "
              + join
              + " JOIN u ON t.id = u.id AND t.k = u.k");
    }
    all.put("semi_join", "SELECT count(*), sum(d) FROM t LEFT SEMI JOIN u ON t.id = u.id");
    all.put("anti_join", "SELECT count(*), sum(d) FROM t LEFT ANTI JOIN u ON t.id = u.id");
    all.put(
        "skewed_join",
        "SELECT count(*), sum(a.v), sum(b.id) FROM skewed a JOIN (SELECT k, id FROM t WHERE id <"
            + " 3000) b ON a.k = b.k");
    all.put("sort", "SELECT id, s, d FROM n ORDER BY s DESC NULLS LAST, d, id");
    all.put(
        "window",
        "SELECT id, k, row_number() OVER (PARTITION BY k ORDER BY id) AS r,"
            + " sum(d) OVER (PARTITION BY s ORDER BY id) AS running FROM n");
    all.put("distinct", "SELECT DISTINCT k, s FROM t");
    all.put("rollup", "SELECT k % 10 AS a, flag, count(*), sum(d) FROM t GROUP BY ROLLUP(1, 2)");
    all.put(
        "union", "SELECT s, count(*) FROM (SELECT s FROM t UNION ALL SELECT s FROM u) GROUP BY s");
    all.put("count_of_nothing", "SELECT count(*) FROM (SELECT /*+ REPARTITION(5) */ id FROM t)");
    all.put("empty", "SELECT s, count(*) FROM t WHERE id < 0 GROUP BY s");
    all.put(
        "empty_join", "SELECT count(*) FROM t JOIN (SELECT * FROM u WHERE id < 0) u USING (id)");
    all.put(
        "cpu_in_between",
        "SELECT b, count(*), sum(c) FROM (SELECT on_cpu(s) AS b, c FROM (SELECT s, count(*) AS c"
            + " FROM t GROUP BY s)) GROUP BY b");
    return all;
  }
}
