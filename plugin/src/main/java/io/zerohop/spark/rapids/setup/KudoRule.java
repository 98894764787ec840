package io.zerohop.spark.rapids.setup;

import io.zerohop.device.Message;
import io.zerohop.shuffle.conf.Keys;
import io.zerohop.spark.conf.ZerohopConf;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.rapids.api.RapidsMember.RapidsFeature;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.UnaryLike;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.exchange.Exchange;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.AtomicType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/**
 * Replaces the partitioning of RAPIDS' exchanges by one that passes whole batches to the shuffle
 * ({@link KudoPartitioning}), for hash, round robin and range. For the driver. Thread safe.
 */
final class KudoRule extends Rule<SparkPlan> {
  private static final Logger LOG = LoggerFactory.getLogger(KudoRule.class);
  static final String EXCHANGE = "org.apache.spark.rapids.shims.GpuShuffleExchangeExec";
  private static final Set<String> SAID = ConcurrentHashMap.newKeySet();

  @Override
  public SparkPlan apply(final SparkPlan plan) {
    final SparkEnv env = SparkEnv.get();
    if (env == null || !RapidsMode.isActive(env.conf())) {
      return plan; // Spark has its own sentence about a context that was stopped.
    }
    final KudoPartitioning kudo =
        RapidsMode.has(env.conf(), RapidsFeature.KUDO) ? KudoPartitioning.get() : null;
    final boolean on = kudo != null && isOn(env.conf());
    return plan.transformUp(
        new AbstractPartialFunction<SparkPlan, SparkPlan>() {
          @Override
          public boolean isDefinedAt(final SparkPlan node) {
            return node.getClass().getName().equals(EXCHANGE);
          }

          @Override
          public SparkPlan apply(final SparkPlan node) {
            return convert(node, kudo, on);
          }
        });
  }

  /** A session may set it, too. */
  private boolean isOn(final SparkConf conf) {
    final String key = "spark.zerohop.rapids.kudo.enabled";
    final String set = conf().getConfString(key, null);
    return set == null ? ZerohopConf.of(conf).rapids().kudo() : Keys.isTrue(key, set);
  }

  /** The exchange with a partitioning in the other form; itself if it is left alone. */
  private static SparkPlan convert(
      final SparkPlan exchange, final @Nullable KudoPartitioning kudo, final boolean on) {
    final Object[] arguments = new Object[exchange.productArity()];
    for (int i = 0; i < arguments.length; i++) {
      arguments[i] = exchange.productElement(i);
      if (kudo != null && kudo.isConverted(arguments[i])) {
        return exchange; // Rules may see a plan again.
      }
    }
    for (int i = 0; kudo != null && on && i < arguments.length; i++) {
      if (kudo.applies(arguments[i]) && canCarry(kudo, arguments[i], exchange)) {
        arguments[i] = kudo.convert(arguments[i], childOf(exchange));
        return exchange.makeCopy(arguments);
      }
    }
    PoolAdvice.give(SparkEnv.get().conf(), exchange.outputPartitioning().numPartitions());
    return exchange;
  }

  private static boolean canCarry(
      final KudoPartitioning kudo, final Object partitioning, final SparkPlan exchange) {
    if (!kudo.feedsGpuShuffle(partitioning) || exchange.outputPartitioning().numPartitions() < 2) {
      return false;
    }
    if (kudo.isRange(partitioning) && hasExchange(childOf(exchange))) {
      return false;
    }
    final StructField[] columns = exchange.schema().fields();
    for (final StructField column : columns) {
      if (!isKnown(column.dataType())) {
        say(
            SparkCode.SPLIT_FOR_TYPE.says(
                "a column is of type " + column.dataType().simpleString()));
        return false;
      }
    }
    return columns.length > 0;
  }

  /** By a method whose signature is the same for Scala 2.12 and 2.13. */
  private static SparkPlan childOf(final SparkPlan exchange) {
    return (SparkPlan) ((UnaryLike<?>) exchange).child();
  }

  /**
   * Whether a plan has an exchange that is not a finished stage. Later rules may copy it, and
   * sampling the copy that a range partitioning knows would then shuffle its rows a second time.
   * Adaptive execution plans a stage when all that it reads is finished.
   */
  private static boolean hasExchange(final SparkPlan plan) {
    return plan.exists(
        new AbstractFunction1<SparkPlan, Object>() {
          @Override
          public Boolean apply(final SparkPlan node) {
            return node instanceof Exchange;
          }
        });
  }

  /** Whether RAPIDS' serializer is known to be right about a type; structs need members. */
  static boolean isKnown(final DataType type) {
    if (type instanceof ArrayType array) {
      return isKnown(array.elementType());
    }
    if (type instanceof MapType map) {
      return isKnown(map.keyType()) && isKnown(map.valueType());
    }
    if (type instanceof StructType struct) {
      for (final StructField field : struct.fields()) {
        if (!isKnown(field.dataType())) {
          return false;
        }
      }
      return struct.fields().length > 0;
    }
    return type instanceof AtomicType;
  }

  /** Once; every exchange of the kind would say the same. */
  private static void say(final Message why) {
    if (SAID.add(why.text())) {
      SparkCode.RAPIDS_SPLITS
          .says("RAPIDS splits batches of some exchanges itself, with one allocation a partition")
          .because(why)
          .warn(LOG);
    }
  }
}
