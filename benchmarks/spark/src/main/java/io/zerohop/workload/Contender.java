package io.zerohop.workload;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** A way to shuffle that is compared with others. */
public enum Contender {
  /** Spark's own, at its defaults. */
  SORT("sort", false, Map.of("spark.shuffle.manager", "sort")),

  /** Spark's own without compression, which costs less where files lie in memory. */
  SORT_UNCOMPRESSED(
      "sort_uncompressed",
      false,
      Map.of("spark.shuffle.manager", "sort", "spark.shuffle.compress", "false")),

  /** Ours, by the one setting it needs. */
  ZEROHOP(
      "zerohop", true, Map.of("spark.shuffle.manager", "io.zerohop.spark.ZerohopShuffleManager")),

  /** The same with a keeper, which has what executors published after they have ended. */
  ZEROHOP_KEEPER(
      "zerohop+keeper",
      true,
      Map.of(
          "spark.shuffle.manager",
          "io.zerohop.spark.ZerohopShuffleManager",
          "spark.zerohop.keeper",
          "true"));

  private final String label;
  private final boolean needsPlugin;
  private final Map<String, String> conf;

  Contender(final String label, final boolean needsPlugin, final Map<String, String> conf) {
    this.label = label;
    this.needsPlugin = needsPlugin;
    this.conf = conf;
  }

  /** Its name in tables and measurements. */
  public String label() {
    return label;
  }

  /** Whether the plugin's jar belongs on its class path. */
  boolean needsPlugin() {
    return needsPlugin;
  }

  /** The settings that choose it. */
  Map<String, String> conf() {
    return conf;
  }

  /** Finds one by its label. */
  public static Contender labelled(final String label) {
    return Arrays.stream(values())
        .filter(contender -> contender.label.equals(label))
        .findAny()
        .orElseThrow(() -> new IllegalArgumentException(unknown(label)));
  }

  private static String unknown(final String label) {
    final List<String> labels = Arrays.stream(values()).map(Contender::label).toList();
    return "no shuffle '"
        + label
        + "'; there are "
        + labels.stream().collect(Collectors.joining(", "));
  }
}
