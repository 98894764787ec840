package io.zerohop.spark.rapids.setup;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Adds {@link CoalesceRule} and {@link KudoRule} to Spark sessions. Spark makes it by its name from
 * {@code spark.sql.extensions}, where {@link RapidsMode} puts it.
 */
public final class RapidsExtension extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  /** Made by Spark. */
  public RapidsExtension() {}

  @Override
  public BoxedUnit apply(final SparkSessionExtensions extensions) {
    extensions.injectColumnar(
        new AbstractFunction1<SparkSession, ColumnarRule>() {
          @Override
          public ColumnarRule apply(final SparkSession session) {
            return new AfterRapids();
          }
        });
    return BoxedUnit.UNIT;
  }

  /** RAPIDS puts its exchanges into plans before transitions are added. */
  private static final class AfterRapids extends ColumnarRule {
    @Override
    public Rule<SparkPlan> postColumnarTransitions() {
      return new Both();
    }
  }

  /** A range partitioning of {@link KudoRule} samples its input as it is planned by then. */
  private static final class Both extends Rule<SparkPlan> {
    private final CoalesceRule first = new CoalesceRule();
    private final KudoRule second = new KudoRule();

    @Override
    public SparkPlan apply(final SparkPlan plan) {
      return second.apply(first.apply(plan));
    }
  }
}
