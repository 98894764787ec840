package io.zerohop.spark.compat;

import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/**
 * Takes the messages that an endpoint of Spark's RPC knows; any other is Spark's to refuse. Thread
 * safe, as far as what takes them is.
 */
public final class RpcMessages<M> extends AbstractPartialFunction<Object, BoxedUnit> {
  private final Class<M> type;
  private final Predicate<M> isKnown;
  private final Consumer<M> taker;

  /**
   * @param isKnown whether a message of this type is one of the endpoint's
   */
  public RpcMessages(final Class<M> type, final Predicate<M> isKnown, final Consumer<M> taker) {
    this.type = type;
    this.isKnown = isKnown;
    this.taker = taker;
  }

  @Override
  public boolean isDefinedAt(final Object message) {
    return type.isInstance(message) && isKnown.test(type.cast(message));
  }

  @Override
  public <A, B> @Nullable B applyOrElse(final A message, final Function1<A, B> otherwise) {
    if (!isDefinedAt(message)) {
      return otherwise.apply(message);
    }
    taker.accept(type.cast(message));
    return null;
  }
}
