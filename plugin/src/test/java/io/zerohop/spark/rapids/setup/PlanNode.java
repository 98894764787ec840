package io.zerohop.spark.rapids.setup;

import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.execution.SparkPlan;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** An operator that only has its place in a plan. */
public class PlanNode extends SparkPlan {
  private final Seq<SparkPlan> children;

  /** Above others. */
  public PlanNode(final SparkPlan... children) {
    this.children = CollectionConverters.asScala(List.of(children)).toSeq();
  }

  @Override
  public Seq<SparkPlan> children() {
    return children;
  }

  @Override
  public SparkPlan withNewChildrenInternal(final IndexedSeq<SparkPlan> replaced) {
    return again(CollectionConverters.asJava(replaced).toArray(new SparkPlan[0]));
  }

  /** The same kind of operator above others. */
  protected SparkPlan again(final SparkPlan... replaced) {
    throw new UnsupportedOperationException(getClass() + " above " + List.of(replaced));
  }

  @Override
  public Seq<Attribute> output() {
    return CollectionConverters.asScala(List.<Attribute>of()).toSeq();
  }

  @Override
  public RDD<InternalRow> doExecute() {
    throw new UnsupportedOperationException("it is never run");
  }

  @Override
  public int productArity() {
    return 0;
  }

  @Override
  public Object productElement(final int index) {
    throw new IndexOutOfBoundsException(index);
  }

  @Override
  public boolean canEqual(final Object other) {
    return other == this;
  }
}
