package io.zerohop.spark.watch;

import io.zerohop.spark.log.SparkCode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A failure of the tab or of what reports to it: a warning, since shuffles go on without. */
public final class TabFailure {
  private static final Logger LOG = LoggerFactory.getLogger(TabFailure.class);

  private TabFailure() {}

  /**
   * Logs one.
   *
   * @param what cannot be done
   */
  public static void warn(final String what, final Throwable why) {
    SparkCode.NO_TAB
        .says(what)
        .because(why)
        .remedy("set spark.zerohop.ui.interval=0 to do without it")
        .warn(LOG, why);
  }
}
