package io.zerohop.spark.ui;

import java.util.function.Supplier;
import org.apache.spark.ui.SparkUI;
import org.apache.spark.ui.SparkUITab;

/** The tab: its page, and a page with the runbook's rows. */
final class ShuffleTab extends SparkUITab {
  /** As users see it. */
  static final String NAME = "GPU Shuffle";

  private static final String PREFIX = "zerohop";

  private ShuffleTab(final SparkUI ui, final Supplier<UiSnapshot> snapshots) {
    super(ui, PREFIX);
    attachPage(new ShufflePage(this, "", query -> PageContent.of(snapshots.get(), query)));
    attachPage(new ShufflePage(this, Runbook.PAGE, query -> Runbook.page()));
  }

  /** Adds the tab to a UI. */
  static void attach(final SparkUI ui, final Supplier<UiSnapshot> snapshots) {
    ui.attachTab(new ShuffleTab(ui, snapshots));
  }

  /** Where a UI has it. */
  static String url(final SparkUI ui) {
    return ui.webUrl() + "/" + PREFIX + "/";
  }

  @Override
  public String name() {
    return NAME;
  }
}
