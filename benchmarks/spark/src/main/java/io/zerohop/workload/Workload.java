package io.zerohop.workload;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * SQL to run and to measure: some settings, then one query.
 *
 * @param name how it is asked for
 * @param settings {@code SET} statements that hold for this query only
 * @param query the query
 */
public record Workload(String name, List<String> settings, String query) {
  /** The queries of TPC-H that the demo runs, then one big repartition and one skewed join. */
  public static final List<String> ALL =
      List.of(
          "q1",
          "q3",
          "q4",
          "q5",
          "q7",
          "q9",
          "q10",
          "q12",
          "q13",
          "q16",
          "q18",
          "q21",
          "repartition",
          "skewed_join");

  /** All queries of TPC-H, with the specification's validation parameters. */
  public static final List<String> TPCH =
      IntStream.rangeClosed(1, 22).mapToObj(number -> "q" + number).toList();

  private static final String TPCDS_PREFIX = "tpcds:";
  private static final Set<Integer> TPCDS_TWINS = Set.of(14, 23, 24, 39);

  /** All queries of TPC-DS, as Spark's own tests have them: 99, and four that are two. */
  public static final List<String> TPCDS =
      IntStream.rangeClosed(1, 99)
          .boxed()
          .flatMap(
              number ->
                  TPCDS_TWINS.contains(number)
                      ? Stream.of("q" + number + "a", "q" + number + "b")
                      : Stream.of("q" + number))
          .map(TPCDS_PREFIX::concat)
          .toList();

  /**
   * Those of {@link #TPCDS} whose limit may cut through rows that tie, see {@link Answer}: sorted
   * by sums, ranks or counts alone (6, 33, 36, 44, 47, 49, 56, 57, 70, 75, 79, 86, 89), by what
   * several versions of an item or a store share (37, 59, 65, 82), or with nulls that stand for a
   * group or for all groups (18). The keys of all others tell their rows apart.
   */
  public static final Set<String> TIED =
      Stream.of(6, 18, 33, 36, 37, 44, 47, 49, 56, 57, 59, 65, 70, 75, 79, 82, 86, 89)
          .map(number -> TPCDS_PREFIX + "q" + number)
          .collect(Collectors.toUnmodifiableSet());

  private static final String ETL_PREFIX = "etl:";

  /**
   * What a job that prepares tables does with those of TPC-DS: writes one clustered, one sorted and
   * one joined, as Parquet files into the folder that the key {@code etl.out} names; and the rows
   * that it wrote, counted and hashed.
   */
  public static final List<String> ETL =
      Stream.of("clustered", "sorted", "joined", "rows").map(ETL_PREFIX::concat).toList();

  private static final BigDecimal FRACTION_AT_SCALE_ONE = new BigDecimal("0.0001");
  private static final int FRACTION_DIGITS = 12;
  private static final Pattern GROWTH = Pattern.compile("growth:(\\d+):(\\d+)");
  private static final String GROWTH_QUERY =
      """
      SELECT count(*) AS n, bit_xor(h) AS hash_xor, sum(h & 4294967295L) AS low_sum,
             sum(shiftrightunsigned(h, 32)) AS high_sum
      FROM (SELECT xxhash64(id, payload) AS h
            FROM (SELECT /*+ REPARTITION(%1$d, id) */ id, lpad(id, 92, 'zerohop ') AS payload
                  FROM range(0, %2$d, 1, %1$d)))
      """;

  /** Copies the settings. */
  public Workload {
    settings = List.copyOf(settings);
  }

  /** Finds a workload for tables of scale factor 1, which matters to q11 alone. */
  public static Workload named(final String name) {
    return named(name, 1);
  }

  /**
   * Finds a workload.
   *
   * @param name one of {@link #ALL}, {@link #TPCH}, {@link #TPCDS} or {@link #ETL}, or what {@link
   *     #growth} returns
   * @param scale the scale factor of the tables that it will ask
   * @throws IllegalArgumentException if there is none of that name
   */
  public static Workload named(final String name, final double scale) {
    final Matcher growth = GROWTH.matcher(name);
    if (growth.matches()) {
      final int tasks = Integer.parseInt(growth.group(1));
      final long rows = Long.parseLong(growth.group(2));
      return new Workload(name, List.of(), String.format(Locale.ROOT, GROWTH_QUERY, tasks, rows));
    }
    if (TPCDS.contains(name)) {
      final String file = "/tpcds/" + name.substring(TPCDS_PREFIX.length()) + ".sql";
      return new Workload(name, List.of(), resource(file));
    }
    if (ETL.contains(name)) {
      final String file = "etl_" + name.substring(ETL_PREFIX.length()) + ".sql";
      return new Workload(name, List.of(), resource(file));
    }
    if (!ALL.contains(name) && !TPCH.contains(name)) {
      throw new IllegalArgumentException(
          "no query '"
              + name
              + "'; there are "
              + ALL
              + " and all of "
              + TPCH
              + ", "
              + TPCDS
              + " and "
              + ETL);
    }
    final String text = resource(name + ".sql").replaceAll("(?m)^--.*\\n", "");
    final List<String> statements =
        Arrays.stream(text.replace(":fraction", fraction(scale)).split(";\\s*\\n"))
            .map(String::strip)
            .toList();
    final int last = statements.size() - 1;
    return new Workload(name, statements.subList(0, last), statements.get(last));
  }

  /**
   * The name of a repartition of rows of 100 bytes from as many map tasks to as many partitions.
   */
  public static String growth(final int tasks, final long rows) {
    return "growth:" + tasks + ":" + rows;
  }

  /** Whether which of its rows come may be left open, see {@link #TIED}. */
  public boolean mayTie() {
    return TIED.contains(name);
  }

  /** The keys that {@link #settings} changes. */
  List<String> changedKeys() {
    return settings.stream()
        .map(set -> set.substring("SET ".length(), set.indexOf('=')).strip())
        .toList();
  }

  /**
   * Q11's share of the stock that a part must have to be important, as the specification has it.
   */
  private static String fraction(final double scale) {
    return FRACTION_AT_SCALE_ONE
        .divide(BigDecimal.valueOf(scale), FRACTION_DIGITS, RoundingMode.HALF_UP)
        .stripTrailingZeros()
        .toPlainString();
  }

  private static String resource(final String file) {
    try (InputStream in = Workload.class.getResourceAsStream(file)) {
      return new String(in.readAllBytes(), StandardCharsets.UTF_8).strip();
    } catch (final IOException e) {
      throw new UncheckedIOException("reading " + file, e);
    }
  }
}
