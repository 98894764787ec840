package io.zerohop.bench;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * How one contender does beside a yardstick, query by query: the ratio of their medians. Both took
 * turns, so a ratio says more than either of its times.
 *
 * @param all one for each query that both have been timed for
 */
record QueryRatios(List<Ratio> all) {
  /**
   * One query's.
   *
   * @param query its name
   * @param ratio the contender's median over the yardstick's
   * @param spread the sum of both spreads, as a part of the median
   * @param bytes what the yardstick wrote of shuffle blocks
   */
  record Ratio(String query, double ratio, double spread, long bytes) {
    /** What is left of the ratio if both spreads are taken for chance. */
    double beyondSpread() {
      return ratio * (1 - spread);
    }
  }

  static QueryRatios of(
      final List<String> queries,
      final Map<String, QueryRuns> contender,
      final Map<String, QueryRuns> yardstick) {
    final List<Ratio> ratios = new ArrayList<>();
    for (final String query : queries) {
      final QueryRuns ours = contender.get(query);
      final QueryRuns theirs = yardstick.get(query);
      if (ours.isTimed() && theirs.isTimed()) {
        ratios.add(
            new Ratio(
                query,
                ours.median() / theirs.median(),
                ours.spread() + theirs.spread(),
                theirs.shuffleBytes()));
      }
    }
    return new QueryRatios(ratios);
  }

  /** Those of queries of which the yardstick wrote more shuffle bytes than so many. */
  QueryRatios ofBytes(final long more) {
    return new QueryRatios(all.stream().filter(one -> one.bytes() > more).toList());
  }

  /** The geometric mean; null if there is nothing to put together. */
  Double mean() {
    return all.isEmpty()
        ? null
        : Math.exp(all.stream().mapToDouble(one -> Math.log(one.ratio())).average().getAsDouble());
  }

  /** The largest ratio beyond its spread; null if there is none. */
  Double worstBeyondSpread() {
    return all.isEmpty() ? null : all.stream().mapToDouble(Ratio::beyondSpread).max().getAsDouble();
  }

  /** What a measurement says of them. */
  Map<String, Object> summary() {
    final Map<String, Object> summary = new LinkedHashMap<>();
    final Optional<Ratio> worst = all.stream().max(Comparator.comparing(Ratio::ratio));
    summary.put("geometric_mean", mean());
    summary.put("worst_ratio", worst.map(Ratio::ratio).orElse(null));
    summary.put("worst_query", worst.map(Ratio::query).orElse(null));
    summary.put("worst_beyond_spread", worstBeyondSpread());
    summary.put("queries", all.size());
    summary.put("faster", all.stream().filter(one -> one.ratio() < 1).count());
    summary.put("faster_by_5_percent", all.stream().filter(one -> one.ratio() < 0.95).count());
    summary.put("slower_by_5_percent", all.stream().filter(one -> one.ratio() > 1.05).count());
    return summary;
  }
}
