package io.zerohop.spark.rapids.setup;

import io.zerohop.spark.compat.SparkFeature;
import io.zerohop.spark.compat.SparkProbe;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;
import org.jspecify.annotations.Nullable;
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

  /**
   * Applies {@link CoalesceRule} first: a range partitioning of {@link KudoRule} samples the plan
   * below it.
   */
  private static final class Both extends Rule<SparkPlan> {
    private final @Nullable CoalesceRule coalesce =
        SparkProbe.here().has(SparkFeature.COALESCE) ? new CoalesceRule() : null;
    private final KudoRule kudo = new KudoRule();

    @Override
    public SparkPlan apply(final SparkPlan plan) {
      return kudo.apply(coalesce == null ? plan : coalesce.apply(plan));
    }
  }
}
