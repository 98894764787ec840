package io.zerohop.spark.ui;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Threads;
import io.zerohop.spark.conf.ZerohopConf;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.report.Advice;
import java.util.List;
import java.util.function.Supplier;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The tab of a running application, and the way of executors' reports into its event log. */
public final class LiveTab {
  private static final Logger LOG = LoggerFactory.getLogger(LiveTab.class);

  private LiveTab() {}

  /**
   * Takes executors' reports in the driver from now on, writes them into the event log if there is
   * one, and shows them if the application has a UI. A failure costs the tab alone. To be called
   * once for a SparkContext.
   *
   * @param doctor looks at the driver, in the background; ends in a limited time
   */
  public static void start(
      final SparkContext context, final SparkEnv env, final Supplier<List<Advice>> doctor) {
    if (ZerohopConf.UI_INTERVAL.get(context.conf()) == 0) {
      return;
    }
    try {
      ReportReceiver.serve(
          env.rpcEnv(), report -> context.listenerBus().post(new ShuffleReportEvent(report)));
      if (context.ui().isDefined()) {
        final ShuffleModel model = new ShuffleModel();
        context.addSparkListener(new ModelListener(model));
        ShuffleTab.attach(context.ui().get(), model::snapshot);
        LOG.info(
            "Zerohop: the tab {} is at {}", ShuffleTab.NAME, ShuffleTab.url(context.ui().get()));
      }
      startDoctor(context, env, doctor);
    } catch (final RuntimeException | LinkageError e) {
      SparkCode.NO_TAB.warn(
          LOG,
          "Zerohop: this application has no tab {}; set {}=0 if none is wanted",
          ShuffleTab.NAME,
          ZerohopConf.UI_INTERVAL.key(),
          e);
    }
  }

  private static void startDoctor(
      final SparkContext context, final SparkEnv env, final Supplier<List<Advice>> doctor) {
    try {
      Threads.daemon(() -> consult(context, env, doctor), "zerohop-doctor").start();
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
}
