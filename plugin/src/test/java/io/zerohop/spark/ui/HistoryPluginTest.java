package io.zerohop.spark.ui;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.ZerohopHistoryPlugin;
import jakarta.servlet.http.HttpServletRequest;
import java.io.ByteArrayInputStream;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ServiceLoader;
import org.apache.spark.SparkConf;
import org.apache.spark.internal.config.package$;
import org.apache.spark.scheduler.ReplayListenerBus;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationStart;
import org.apache.spark.status.AppHistoryServerPlugin;
import org.apache.spark.status.AppStatusListener;
import org.apache.spark.status.AppStatusStore;
import org.apache.spark.status.ApplicationInfoWrapper;
import org.apache.spark.status.ElementTrackingStore;
import org.apache.spark.ui.SparkUI;
import org.apache.spark.ui.WebUITab;
import org.apache.spark.util.JsonProtocol$;
import org.apache.spark.util.kvstore.InMemoryStore;
import org.junit.jupiter.api.Test;
import scala.Option;
import scala.collection.Iterator;

/** A log is replayed, and its UI is made, as the history server does both. */
class HistoryPluginTest {
  private static final SparkConf CONF = new SparkConf(false);
  private static final String START =
      json(
          new SparkListenerApplicationStart(
              "application",
              Option.apply("app-1"),
              1,
              "user",
              Option.empty(),
              Option.empty(),
              Option.empty()));
  private static final String REPORT = json(new ShuffleReportEvent(Reports.full("1")));

  private final InMemoryStore kept = new InMemoryStore();
  private final ElementTrackingStore store = new ElementTrackingStore(kept, CONF);
  private final AppHistoryServerPlugin plugin = plugin();

  @Test
  void aLogWithReportsHasTheTabAndThePageItsNumbers() throws Exception {
    replay(START, REPORT, REPORT);
    final WebUITab tab = tab();
    assertThat(tab).isNotNull();
    final String page = tab.pages().head().render(request()).toString();
    assertThat(page).contains("<html>", "GPU Shuffle", "sorttable_customkey=\"10000000\"");
    // In the history server every part of the UI is below the application's own path.
    assertThat(page).contains("/history/app-1/jobs/");
  }

  @Test
  void aLogWithoutReportsHasNoTab() throws Exception {
    replay(START);
    assertThat(tab()).isNull();
  }

  @Test
  void anEventOfAClassThatIsNotThereIsSkippedAndTheRestIsRead() throws Exception {
    replay(START.replace("application", "other"), unknown(REPORT), REPORT, unknown(REPORT), START);
    assertThat(tab()).isNotNull();
    final ApplicationInfoWrapper known = kept.view(ApplicationInfoWrapper.class).iterator().next();
    assertThat(known.info().name()).isEqualTo("application");
  }

  private static String unknown(final String line) {
    return line.replace(ShuffleReportEvent.class.getName(), "io.zerohop.spark.ui.NotHere");
  }

  private void replay(final String... lines) throws Exception {
    final ReplayListenerBus bus = new ReplayListenerBus();
    bus.addListener(new AppStatusListener(store, CONF, false, Option.empty(), Option.empty()));
    final Iterator<SparkListener> listeners = plugin.createListeners(CONF, store).iterator();
    while (listeners.hasNext()) {
      bus.addListener(listeners.next());
    }
    final byte[] log = String.join("\n", lines).getBytes(StandardCharsets.UTF_8);
    final boolean whole =
        bus.replay(new ByteArrayInputStream(log), "log", false, bus.replay$default$4());
    assertThat(whole).isTrue();
    store.close(false);
  }

  private WebUITab tab() {
    final SparkUI ui =
        SparkUI.create(
            Option.empty(),
            new AppStatusStore(store, Option.empty(), Option.empty()),
            CONF,
            new org.apache.spark.SecurityManager(
                CONF, Option.empty(), package$.MODULE$.AUTH_SECRET_FILE()),
            "application",
            "/history/app-1",
            1,
            "4");
    plugin.setupUI(ui);
    final Iterator<WebUITab> tabs = ui.getTabs().iterator();
    while (tabs.hasNext()) {
      final WebUITab tab = tabs.next();
      if (tab.name().equals(ShuffleTab.NAME)) {
        return tab;
      }
    }
    return null;
  }

  private static AppHistoryServerPlugin plugin() {
    return ServiceLoader.load(AppHistoryServerPlugin.class).stream()
        .filter(found -> found.type() == ZerohopHistoryPlugin.class)
        .findFirst()
        .orElseThrow()
        .get();
  }

  /** A request without parameters. */
  private static HttpServletRequest request() {
    return (HttpServletRequest)
        Proxy.newProxyInstance(
            HistoryPluginTest.class.getClassLoader(),
            new Class<?>[] {HttpServletRequest.class},
            (proxy, method, arguments) -> null);
  }

  private static String json(final org.apache.spark.scheduler.SparkListenerEvent event) {
    return JsonProtocol$.MODULE$.sparkEventToJsonString(event);
  }
}
