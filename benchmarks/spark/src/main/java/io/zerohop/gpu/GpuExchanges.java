package io.zerohop.gpu;

/**
 * Queries of one large exchange each and a result of one row. Their rows are generated on the GPU,
 * so that nothing but the exchange moves them.
 */
final class GpuExchanges {
  private GpuExchanges() {}

  /**
   * One of the queries.
   *
   * @param name {@code repartition}, {@code range}, which is the same by ranges of its key, {@code
   *     unmoved}, which is the same without the exchange, {@code text}, {@code group_by} or {@code
   *     join}
   * @param rows that are generated, for a join on each side
   * @param maps how many tasks generate them
   * @param partitions of a repartition; the others have what {@code spark.sql.shuffle.partitions}
   *     says
   */
  static String query(final String name, final long rows, final int maps, final String partitions) {
    final String all = "range(0, " + rows + ", 1, " + maps + ")";
    return switch (name) {
      case "repartition" -> hashOf("/*+ REPARTITION(" + partitions + ", k) */", all);
      case "range" -> hashOf("/*+ REPARTITION_BY_RANGE(" + partitions + ", k) */", all);
      case "unmoved" -> hashOf("", all);
      case "text" ->
          "SELECT count(*), sum(xxhash64(k, s, t)) FROM (SELECT /*+ REPARTITION("
              + partitions
              + ", k) */ * FROM (SELECT xxhash64(id) AS k, CAST(id AS STRING) AS s,"
              + " CAST(id * 7919 AS STRING) AS t FROM "
              + all
              + "))";
      case "group_by" ->
          "SELECT count(*), sum(n), max(s), max(m) FROM (SELECT g, count(*) AS n, sum(v) AS s,"
              + " max(w) AS m FROM (SELECT pmod(xxhash64(id), "
              + rows * 2
              + ") AS g, id AS v, id * 3 AS w FROM "
              + all
              + ") GROUP BY g)";
      case "join" ->
          "SELECT count(*), sum(v), max(w), sum(x) FROM (SELECT xxhash64(id) AS k, id AS v, id * 3"
              + " AS w FROM "
              + all
              + ") JOIN (SELECT xxhash64(id) AS k, id % 100 AS x, id * 7 AS y FROM "
              + all
              + ") USING (k)";
      default -> throw new IllegalArgumentException("no query '" + name + "'");
    };
  }

  /** One hash of every row: sees all columns, and costs little beside the exchange. */
  private static String hashOf(final String hint, final String all) {
    return "SELECT count(*), sum(xxhash64(k, a, b, c, d, e, f)) FROM (SELECT "
        + hint
        + " * FROM (SELECT xxhash64(id) AS k, id AS a, id * 3 AS b, id * 5 AS c,"
        + " id % 1000 AS d, id * 7 AS e, id + 1 AS f FROM "
        + all
        + "))";
  }
}
