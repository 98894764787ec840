package io.zerohop.spark.ui;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Threads;
import io.zerohop.spark.compat.RpcMessages;
import io.zerohop.spark.compat.SparkFeature;
import io.zerohop.spark.compat.SparkLinks;
import io.zerohop.spark.compat.SparkProbe;
import io.zerohop.spark.doctor.RunningDoctor;
import io.zerohop.spark.report.Advice;
import io.zerohop.spark.report.ReportSender.DriverReports;
import io.zerohop.spark.report.ShuffleReport;
import io.zerohop.spark.report.ShuffleReport.ReportJson;
import io.zerohop.spark.watch.DriverWatch;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.rpc.RpcEndpoint;
import org.apache.spark.rpc.RpcEnv;
import org.apache.spark.storage.BlockManager;
import org.apache.spark.storage.BlockManagerId;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.PartialFunction;
import scala.collection.Iterator;
import scala.runtime.BoxedUnit;

/**
 * The tab of a running application. Takes executors' reports in the driver, writes them into the
 * event log if there is one, and shows them if the application has a UI.
 */
public final class LiveTab implements DriverWatch {
  private static final Logger LOG = LoggerFactory.getLogger(LiveTab.class);

  /** Called by this class's name. */
  public LiveTab() {}

  @Override
  public void start(final SparkContext context, final SparkEnv env) {
    start(context, env, () -> RunningDoctor.ofDriver(context.conf()));
  }

  /**
   * Starts the tab.
   *
   * @param doctor looks at the driver, in the background; ends in a limited time
   */
  static void start(
      final SparkContext context, final SparkEnv env, final Supplier<List<Advice>> doctor) {
    ReportReceiver.serve(
        env.rpcEnv(), report -> context.listenerBus().post(new ShuffleReportEvent(report)));
    if (context.ui().isDefined()) {
      final ShuffleModel model = new ShuffleModel();
      context.addSparkListener(model);
      nameHosts(env.blockManager(), model);
      ShuffleTab.attach(context.ui().get(), model::snapshot);
      LOG.info("Zerohop: the tab {} is at {}", ShuffleTab.NAME, ShuffleTab.url(context.ui().get()));
    }
    startDoctor(context, env, doctor);
  }

  /** Of executors that were added before anybody listened. */
  private static void nameHosts(final BlockManager driver, final ShuffleModel model) {
    final BlockManagerId self = driver.blockManagerId();
    model.isOn(self.executorId(), self.host());
    if (SparkProbe.here().has(SparkFeature.SENT)) { // It lists executors, too.
      final Iterator<BlockManagerId> executors = SparkLinks.peers(driver.master(), self).iterator();
      while (executors.hasNext()) {
        final BlockManagerId one = executors.next();
        model.isOn(one.executorId(), one.host());
      }
    }
  }

  private static void startDoctor(
      final SparkContext context, final SparkEnv env, final Supplier<List<Advice>> doctor) {
    try {
      Threads.daemonOfCaller(() -> consult(context, env, doctor), "zerohop-doctor").start();
    } catch (final ZerohopException e) {
      LOG.debug("the tab {} has nothing of the doctor: no thread is left", ShuffleTab.NAME, e);
    }
  }

  private static void consult(
      final SparkContext context, final SparkEnv env, final Supplier<List<Advice>> doctor) {
    try {
      context.listenerBus().post(ShuffleReportEvent.of(env.executorId(), doctor.get()));
    } catch (final RuntimeException | LinkageError e) {
      LOG.debug("the tab {} has nothing of the doctor", ShuffleTab.NAME, e);
    }
  }

  /**
   * Takes executors' reports in the driver, over Spark's own RPC. A report is text: Spark may read
   * it with a class loader that has none of our classes. What is no report is dropped. Thread safe.
   */
  private record ReportReceiver(RpcEnv rpcEnv, Consumer<ShuffleReport> listeners)
      implements RpcEndpoint {
    private static final Logger LOG = LoggerFactory.getLogger(ReportReceiver.class);

    /** Far more than an executor sends within its own limits. */
    private static final int MAX_CHARS = 4 << 20;

    /** Begins to take reports; until the RPC environment ends. */
    static void serve(final RpcEnv rpcEnv, final Consumer<ShuffleReport> listeners) {
      rpcEnv.setupEndpoint(DriverReports.ENDPOINT, new ReportReceiver(rpcEnv, listeners));
    }

    @Override
    public PartialFunction<Object, BoxedUnit> receive() {
      return new RpcMessages<>(String.class, any -> true, this::take);
    }

    private void take(final String text) {
      if (text.length() > MAX_CHARS) {
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
}
