package io.zerohop.workload;

import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;

/**
 * A query's {@code ORDER BY} and {@code LIMIT}. Where rows tie at the limit, which of them come is
 * left open by SQL, and two runs may differ in that.
 *
 * @param limit how many rows come at most
 * @param keys the columns that the result is sorted by, as ordinals from 0. For a key that is
 *     computed from columns of the result it is these columns, by which fewer rows tie than by the
 *     key. They end before the first key that the result does not tell.
 */
public record SortedLimit(int limit, List<Integer> keys) {
  /** Copies the ordinals. */
  public SortedLimit {
    keys = List.copyOf(keys);
  }

  /** Reads them from the analysed plan; empty if the query has no limit, order, or such key. */
  public static Optional<SortedLimit> of(final Dataset<Row> query) {
    final LogicalPlan analysed = query.queryExecution().analyzed();
    final LogicalPlan top = analysed instanceof WithCTE with ? with.plan() : analysed;
    if (top instanceof GlobalLimit global
        && global.limitExpr() instanceof Literal literal
        && global.child() instanceof LocalLimit local) {
      final List<Integer> keys = keys(top, local.child());
      return keys.isEmpty()
          ? Optional.empty()
          : Optional.of(new SortedLimit((Integer) literal.value(), keys));
    }
    return Optional.empty();
  }

  /** Whether these rows are as many as may come. */
  public boolean isReached(final List<Row> rows) {
    return rows.size() == limit;
  }

  /**
   * Whether the limit cuts through rows that tie.
   *
   * @param longer the rows of the same query with a higher limit, in their order
   */
  public boolean cutsTies(final List<Row> longer) {
    return longer.size() > limit && key(longer.get(limit - 1)).isCloseTo(key(longer.get(limit)));
  }

  /** A row's sort key. */
  AnswerLine key(final Row row) {
    return AnswerLine.parse(ResultFile.line(row)).fields(keys);
  }

  private static List<Integer> keys(final LogicalPlan top, final LogicalPlan below) {
    final Map<Expression, Integer> ordinals = new HashMap<>();
    final List<Attribute> output = ScalaLists.get(Attribute.class, top, "output");
    for (int i = 0; i < output.size(); i++) {
      ordinals.putIfAbsent(output.get(i).canonicalized(), i);
    }
    LogicalPlan plan = below;
    while (plan instanceof Project project) {
      follow(project, ordinals);
      plan = project.child();
    }
    if (!(plan instanceof Sort sort && sort.global())) {
      return List.of();
    }
    if (sort.child() instanceof Project project) {
      follow(project, ordinals);
    }
    return keys(sort, ordinals);
  }

  /** What a column of the result is computed from stands for it below. */
  private static void follow(final Project project, final Map<Expression, Integer> ordinals) {
    for (final NamedExpression column :
        ScalaLists.get(NamedExpression.class, project, "projectList")) {
      if (column instanceof Alias alias && alias.child().deterministic()) {
        final Integer ordinal = ordinals.get(alias.toAttribute().canonicalized());
        if (ordinal != null) {
          ordinals.putIfAbsent(alias.child().canonicalized(), ordinal);
        }
      }
    }
  }

  private static List<Integer> keys(final Sort sort, final Map<Expression, Integer> ordinals) {
    final Set<Integer> keys = new LinkedHashSet<>();
    for (final SortOrder order : ScalaLists.get(SortOrder.class, sort, "order")) {
      final List<Integer> columns = columns(order.child(), ordinals);
      if (columns.stream().anyMatch(Objects::isNull)) {
        break;
      }
      keys.addAll(columns);
    }
    return List.copyOf(keys);
  }

  /** The column that a key is, or those that it is computed from; null for what is none. */
  private static List<Integer> columns(
      final Expression key, final Map<Expression, Integer> ordinals) {
    final Integer column = ordinals.get(key.canonicalized());
    return column != null
        ? List.of(column)
        : ScalaLists.of(key.references()).stream()
            .map(part -> ordinals.get(((Expression) part).canonicalized()))
            .toList();
  }
}
