package io.zerohop.spark.ui;

import io.zerohop.spark.report.Advice;
import io.zerohop.spark.report.Figure;
import io.zerohop.spark.report.Figure.Figures;
import io.zerohop.spark.report.ShuffleReport;
import io.zerohop.spark.report.ShuffleReport.Cause;
import io.zerohop.spark.report.ShuffleReport.Contact;
import io.zerohop.spark.report.ShuffleReport.Flow;
import io.zerohop.spark.report.ShuffleReport.Keeper;
import io.zerohop.spark.report.ShuffleReport.Memory;
import io.zerohop.spark.report.ShuffleReport.Moved;
import io.zerohop.spark.report.ShuffleReport.ShuffleUse;
import java.util.List;
import java.util.Map;

/** Reports for tests. */
final class Reports {
  static final long BEGIN = 1_700_000_000_000L;
  static final String REASON = "it could not be reached: <timeout> & \"more\" \u0001";

  static final Advice MEND =
      new Advice("memlock", "warn", "ZH-2001", "too <little>", "here & there", "raise it");
  static final Cause CAUSE = new Cause("ZH-3034", "", 310);
  static final Advice FINE = new Advice("spark", "ok", "", "Spark 4", "", "");

  private Reports() {}

  /** What an older release reports of one owner, or of links that were in use with breaks. */
  static Flow flow(
      final String owner, final String path, final long blocks, final long bytes, final long busy) {
    return new Flow(owner, path, null, blocks, bytes, busy, 0, 0);
  }

  /** An executor that read a little of everything. */
  static ShuffleReport full(final String executorId) {
    return new ShuffleReport(
        executorId,
        "",
        BEGIN,
        List.of(
            flow("1", "local", 10, 1_000, 10),
            flow("2", "peer", 20, 5_000_000, 10),
            flow("3", "staged", 5, 300, 10)),
        List.of(
            new ShuffleUse(
                4,
                List.of(7),
                List.of(8, 9),
                Map.of(
                    "local", new Moved(10, 1_000),
                    "peer", new Moved(20, 5_000_000),
                    "staged", new Moved(5, 300)),
                2_500_000,
                Map.of(REASON, 5L),
                Map.of(REASON, CAUSE))),
        memory(1 << 20),
        List.of(new Contact("2", "read by UCX: get over rc", "ucx", 0)),
        List.of(MEND, FINE));
  }

  /** An executor that read one shuffle. */
  static ShuffleReport ofShuffle(final int shuffleId) {
    final ShuffleUse use = new ShuffleUse(shuffleId, List.of(), List.of(), Map.of(), 1, null, null);
    return new ShuffleReport("1", "", BEGIN, null, List.of(use), null, null, null);
  }

  /** An executor's memory at a time after the beginning. */
  static ShuffleReport ofMemory(final String executorId, final long millis, final long used) {
    return new ShuffleReport(executorId, "", BEGIN + millis, null, null, memory(used), null, null);
  }

  /**
   * An executor that has a keeper, or is to have one.
   *
   * @param started the keeper's start, after the beginning; negative if the executor has none now
   */
  static ShuffleReport ofKeeper(
      final String executorId, final String node, final long millis, final long started) {
    final Keeper keeper =
        started < 0
            ? new Keeper(0, "", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
            : new Keeper(
                BEGIN + started,
                "1.2 <&>",
                64 << 20,
                5 << 20,
                4 << 20,
                41,
                52,
                11,
                7,
                3,
                9 << 20,
                1 << 10,
                6 << 20,
                70 << 20);
    final Memory memory = new Memory(Figures.NONE, keeper);
    return new ShuffleReport(executorId, node, BEGIN + millis, null, null, memory, null, null);
  }

  private static Memory memory(final long used) {
    return memory(
        Map.of(
            Figure.HOST_USED,
            used,
            Figure.HOST_LIMIT,
            64L << 20,
            Figure.DEVICE_USED,
            2 * used,
            Figure.DEVICE_LIMIT,
            128L << 20,
            Figure.FILES,
            3 * used,
            Figure.OVERFLOWED,
            11L,
            Figure.SPILLED_TO_HOST,
            12L,
            Figure.SPILLED_TO_FILES,
            13L));
  }

  /** An executor's memory, without a keeper; figures that are not named are 0. */
  static Memory memory(final Map<Figure, Long> figures) {
    return new Memory(Figures.of(figure -> figures.getOrDefault(figure, 0L)), null);
  }
}
