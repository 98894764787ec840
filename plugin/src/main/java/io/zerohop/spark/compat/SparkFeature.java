package io.zerohop.spark.compat;

import java.util.List;

/**
 * A feature that needs members of Spark which a vendor's Spark may lack, and the fallback without
 * them. {@link SparkProbe} says whether they are there.
 */
public enum SparkFeature {
  /** Nothing works without it, so Zerohop steps aside. */
  SHUFFLE("shuffles in memory", "Spark's sort shuffle is used", "compat.SparkLinks"),
  SENT(
      "sending blocks over Spark's connections (path sent)",
      "blocks of other nodes are staged",
      "compat.SparkLinks$Peers"),
  UCX("the control channel of path ucx", "blocks of other nodes are sent or staged"),
  COALESCE("few, large reduce tasks on GPUs", "their number is Spark's"),
  GPU("RAPIDS' shuffles in GPU memory", "they go through host memory"),
  SQL_ROWS("copying rows of Spark SQL as they are", "they go through Spark's serializer"),
  QUERIES(
      "spilling the shuffles of finished queries first",
      "only their age counts",
      "compat.SparkLinks$Jobs"),
  KEEPER("keepers of map outputs", "what an executor has in memory ends with it"),
  TAB("the tab of Spark's UI", "there is no tab");

  private final String words;
  private final String fallback;
  private final List<String> binders;

  SparkFeature(final String words, final String fallback, final String... binders) {
    this.words = words;
    this.fallback = fallback;
    this.binders = List.of(binders);
  }

  public String words() {
    return words;
  }

  /** Returns what happens without it, as a sentence without its end. */
  public String fallback() {
    return fallback;
  }

  /**
   * Classes of ours, below {@code io.zerohop.spark}, that look members up by name when they are
   * initialised, and fail if there are none that they know.
   */
  List<String> binders() {
    return binders;
  }
}
