package io.zerohop.spark.ui;

import io.zerohop.spark.compat.SparkPages;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.spark.ui.SparkUI;
import org.apache.spark.ui.SparkUITab;
import org.apache.spark.ui.WebUIPage;
import scala.collection.immutable.Seq;
import scala.xml.Node;
import scala.xml.Unparsed;

/**
 * The tab GPU Shuffle: its page, and a page with the runbook's rows. Reports of executors become
 * events of the application, events become a bounded model, and the model becomes the page, live
 * and in the history server.
 */
final class ShuffleTab extends SparkUITab {
  static final String NAME = "GPU Shuffle";

  private static final String PREFIX = "zerohop";

  private ShuffleTab(final SparkUI ui, final Supplier<UiSnapshot> snapshots) {
    super(ui, PREFIX);
    attachPage(new ShufflePage(this, "", query -> PageContent.of(snapshots.get(), query)));
    attachPage(new ShufflePage(this, Runbook.PAGE, query -> Runbook.page()));
  }

  static void attach(final SparkUI ui, final Supplier<UiSnapshot> snapshots) {
    ui.attachTab(new ShuffleTab(ui, snapshots));
  }

  static String url(final SparkUI ui) {
    return ui.webUrl() + "/" + PREFIX + "/";
  }

  @Override
  public String name() {
    return NAME;
  }

  /**
   * A page in Spark's frame. Spark 3.5 calls it with a request of {@code javax.servlet}, 4.x with
   * one of {@code jakarta.servlet}; a class is loaded only with the method that is called, so the
   * other package may be missing. Thread safe.
   */
  private static final class ShufflePage extends WebUIPage implements RenderJavax212 {
    private final ShuffleTab tab;
    private final Function<PageQuery, String> content;
    private final SparkPages pages = SparkPages.find();

    /**
     * @param prefix its address within the tab
     * @param content makes its content
     */
    ShufflePage(
        final ShuffleTab tab, final String prefix, final Function<PageQuery, String> content) {
      super(prefix);
      this.tab = tab;
      this.content = content;
    }

    @Override
    public Seq<Node> render(final jakarta.servlet.http.HttpServletRequest request) {
      return inFrame(request, PageQuery.of(request::getParameter));
    }

    @Override
    public Seq<Node> render(final javax.servlet.http.HttpServletRequest request) {
      return inFrame(request, PageQuery.of(request::getParameter));
    }

    private Seq<Node> inFrame(final Object request, final PageQuery query) {
      return pages.inFrame(request, ShuffleTab.NAME, new Unparsed(content.apply(query)), tab);
    }
  }

  /**
   * The method that Spark 3.5 for Scala 2.12 calls on a page: there {@code Seq} is the general one.
   * The compiler adds this method to the page, beside that of Scala 2.13.
   */
  interface RenderJavax212 {
    scala.collection.Seq<Node> render(javax.servlet.http.HttpServletRequest request);
  }
}
