package io.zerohop.spark.ui;

import io.zerohop.spark.report.DriverReports;
import io.zerohop.spark.report.ReportJson;
import io.zerohop.spark.report.ShuffleReport;
import java.util.function.Consumer;
import org.apache.spark.rpc.RpcEndpoint;
import org.apache.spark.rpc.RpcEnv;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.Function1;
import scala.PartialFunction;
import scala.runtime.AbstractPartialFunction;
import scala.runtime.BoxedUnit;

/**
 * Takes executors' reports in the driver, over Spark's own RPC. A report is text: Spark may read it
 * with a class loader that has none of our classes. What is no report is dropped. Thread safe.
 */
final class ReportReceiver implements RpcEndpoint {
  private static final Logger LOG = LoggerFactory.getLogger(ReportReceiver.class);

  /** Far more than an executor sends within its own limits. */
  private static final int MOST_CHARS = 4 << 20;

  private final RpcEnv rpcEnv;
  private final Consumer<ShuffleReport> listeners;

  private ReportReceiver(final RpcEnv rpcEnv, final Consumer<ShuffleReport> listeners) {
    this.rpcEnv = rpcEnv;
    this.listeners = listeners;
  }

  /** Begins to take reports; until the RPC environment ends. */
  static void serve(final RpcEnv rpcEnv, final Consumer<ShuffleReport> listeners) {
    rpcEnv.setupEndpoint(DriverReports.ENDPOINT, new ReportReceiver(rpcEnv, listeners));
  }

  @Override
  public RpcEnv rpcEnv() {
    return rpcEnv;
  }

  @Override
  public PartialFunction<Object, BoxedUnit> receive() {
    return new AbstractPartialFunction<>() {
      @Override
      public boolean isDefinedAt(final Object message) {
        return message instanceof String;
      }

      @Override
      public <A, B> B applyOrElse(final A message, final Function1<A, B> otherwise) {
        if (message instanceof String text) {
          take(text);
          return null;
        }
        return otherwise.apply(message);
      }
    };
  }

  private void take(final String text) {
    if (text.length() > MOST_CHARS) {
      LOG.debug("a report of {} characters is dropped", text.length());
      return;
    }
    try {
      listeners.accept(ReportJson.read(text, ShuffleReport.class));
    } catch (final IllegalArgumentException e) {
      LOG.debug("what came as a report is dropped", e);
    }
  }
}
