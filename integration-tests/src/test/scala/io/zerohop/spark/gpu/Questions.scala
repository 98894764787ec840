package io.zerohop.spark.gpu

/**
 * A query, and what has to be there for it.
 *
 * @param before statements that come first, on the side that is asked
 * @param after statements that take away what those have made
 * @param settings of Spark SQL, in force where the CPU is not asked
 */
final case class Question(
    query: String,
    before: Seq[String] = Nil,
    after: Seq[String] = Nil,
    settings: Map[String, String] = Map.empty)

/** The queries that [[QueryScenarios]] asks. */
object Questions {
  val Table: String =
    """CREATE OR REPLACE TEMPORARY VIEW t AS
      |SELECT id, id * 7919 % 1000 AS k, IF(id % 11 = 0, NULL, concat('name ', id % 2503)) AS s,
      |  cast(id % 100000 AS decimal(12,2)) AS d
      |FROM range(0, 300000, 1, 8)""".stripMargin

  private val GroupBy = "SELECT s, count(*), sum(id), max(d) FROM t GROUP BY s"
  private val Join =
    "SELECT count(*), sum(a.id), sum(b.id), count(b.s) FROM t a JOIN t b ON a.id = b.id + 1"
  private val RoundRobin =
    "SELECT k, count(*), sum(id) FROM (SELECT /*+ REPARTITION(7) */ * FROM t) GROUP BY k"

  private val Checksums = Map(
    "spark.sql.shuffle.orderIndependentChecksum.enabled" -> "true",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch" -> "true")

  private val Skew = Map(
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes" -> "100KB",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes" -> "100KB")

  val all: Map[String, Question] = Map(
    "group_by" -> Question(GroupBy),
    "join" -> Question(Join),
    // Partitions are so small that Spark coalesces them.
    "merge_join" -> Question(
      Join.replace("SELECT", "SELECT /*+ MERGE(b) */"),
      settings = Map("spark.sql.shuffle.partitions" -> "200")),
    "round_robin" -> Question(RoundRobin),
    "checksums_group_by" -> Question(GroupBy, settings = Checksums),
    "checksums_join" -> Question(Join, settings = Checksums),
    "checksums_round_robin" -> Question(RoundRobin, settings = Checksums),
    "cached_group_by" -> cached("SELECT k, count(*), sum(n), max(s) FROM c GROUP BY k"),
    "cached_join" -> cached(
      "SELECT count(*), sum(c.total), sum(t.id) FROM c JOIN t ON c.k = t.k AND c.s = t.s"),
    "memberless_struct" -> Question(
      "SELECT /*+ REPARTITION(5, k) */ id, k, named_struct() AS e FROM t WHERE id < 5000"),
    "memberless_struct_or_null" -> Question(
      "SELECT /*+ REPARTITION(5, k) */ id, IF(id % 3 = 0, NULL, named_struct()) AS e, k FROM t"),
    // RAPIDS knows no calendar intervals, so the exchange that has one is the CPU's.
    "mixed" -> Question(
      """SELECT k, count(*), sum(days), max(s) FROM (
        |  SELECT k, s, extract(DAY FROM i) AS days FROM (
        |    SELECT /*+ REPARTITION(7) */ k, s, make_interval(0, 0, 0, cast(k AS int)) AS i FROM t))
        |GROUP BY k""".stripMargin),
    "coalesced" -> Question(
      "SELECT id % 50 AS g, count(*), sum(id) FROM t GROUP BY 1",
      settings = Map("spark.sql.shuffle.partitions" -> "40")),
    "skewed_join" -> Question(
      """SELECT /*+ MERGE(b) */ count(*), sum(a.id), sum(b.x) FROM
        |(SELECT IF(id < 270000, 7, id % 40) AS k, id FROM t) a JOIN
        |(SELECT id AS r, id * 3 AS x FROM range(0, 40, 1, 4)) b ON a.k = b.r""".stripMargin,
      settings = Skew))

  private def cached(query: String): Question = Question(
    query,
    before = Seq(
      "CACHE TABLE c AS SELECT k, s, count(*) AS n, sum(id) AS total FROM t GROUP BY k, s"),
    after = Seq("UNCACHE TABLE c", "DROP VIEW c"))
}
