package io.zerohop.spark.ui;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.spark.report.Advice;
import io.zerohop.spark.report.Figure;
import io.zerohop.spark.report.Figure.Figures;
import io.zerohop.spark.report.ReportBounds;
import io.zerohop.spark.report.ShuffleReport;
import io.zerohop.spark.report.ShuffleReport.Cause;
import io.zerohop.spark.report.ShuffleReport.Contact;
import io.zerohop.spark.report.ShuffleReport.Flow;
import io.zerohop.spark.report.ShuffleReport.Keeper;
import io.zerohop.spark.report.ShuffleReport.Memory;
import io.zerohop.spark.report.ShuffleReport.Moved;
import io.zerohop.spark.report.ShuffleReport.ReportJson;
import io.zerohop.spark.report.ShuffleReport.ShuffleUse;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.ReplayListenerBus;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.status.ElementTrackingStore;
import org.apache.spark.util.JsonProtocol$;
import org.apache.spark.util.kvstore.InMemoryStore;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.xml.sax.InputSource;

/** Event logs that no application of ours writes, on their whole way from the file to the page. */
class HostileLogTest {
  /** Far more than the largest application's page, and little for a history server. */
  private static final int MAX_PAGE = 24 << 20;

  private static final long MAX_HEAP = 96L << 20;
  private static final String LONG = "x".repeat(100_000);
  private static final long[] NUMBERS = {
    -1, Long.MIN_VALUE, Long.MAX_VALUE, ReportBounds.MAX_COUNT + 1, -250_000_000, 1L << 62
  };

  private final InMemoryStore kept = new InMemoryStore();

  /** Bytes of a log become a page, as in the history server. */
  private String page(final InputStream log) throws Exception {
    final ElementTrackingStore store = new ElementTrackingStore(kept, new SparkConf(false));
    final ReplayListenerBus bus = new ReplayListenerBus();
    bus.addListener(new HistoryTab().apply(store));
    try {
      bus.replay(log, "log", false, bus.replay$default$4());
    } catch (final Exception e) {
      // Spark gives up a log with a line that is none; what came before is shown here even so.
    } finally {
      store.close(false);
    }
    return StoredSnapshot.isIn(kept)
        ? PageContent.of(StoredSnapshot.read(kept), PageQuery.ALL)
        : "";
  }

  private String page(final byte[] log) throws Exception {
    return page(new ByteArrayInputStream(log));
  }

  private static byte[] log(final ShuffleReport... reports) {
    final List<String> lines = new ArrayList<>();
    for (final ShuffleReport report : reports) {
      lines.add(line(new ShuffleReportEvent(report)));
    }
    return String.join("\n", lines).getBytes(StandardCharsets.UTF_8);
  }

  private static String line(final SparkListenerEvent event) {
    return JsonProtocol$.MODULE$.sparkEventToJsonString(event);
  }

  private static ShuffleReport flows(final Flow... flows) {
    return new ShuffleReport("a", "", 1, List.of(flows), null, null, null, null);
  }

  private static void wellFormed(final String page) throws Exception {
    assertThat(page.length()).isLessThan(MAX_PAGE);
    DocumentBuilderFactory.newInstance()
        .newDocumentBuilder()
        .parse(new InputSource(new StringReader("<html>" + page + "</html>")));
  }

  @Test
  void negativeBytesDoNotBlowThePageUp() throws Exception {
    final List<Flow> flows = new ArrayList<>(List.of(Reports.flow("b", "peer", 1, -1, 0)));
    for (int i = 0; i < 22; i++) {
      flows.add(Reports.flow("x" + i, "peer", 1, -12_500_000, 0));
    }
    wellFormed(page(log(flows(flows.toArray(Flow[]::new)))));
  }

  @Test
  void pathsThatNobodyKnowsAreNotKept() {
    final ShuffleModel model = new ShuffleModel();
    final Map<String, Moved> moved = new HashMap<>();
    for (int i = 0; i < 50; i++) {
      final int some = i;
      model.add(
          flows(
              IntStream.range(0, 1_000)
                  .mapToObj(j -> Reports.flow("o", "p" + some + "-" + j, 1, 1, 1))
                  .toArray(Flow[]::new)));
      moved.put("p" + i, new Moved(1, 1));
    }
    final ShuffleUse use = new ShuffleUse(0, null, null, moved, 0, null, null);
    model.add(new ShuffleReport("e", "", 1, null, List.of(use), null, null, null));
    assertThat(model.snapshot().pairs()).isEmpty();
    assertThat(model.snapshot().shuffles()).isEmpty();
    assertThat(model.snapshot().refused()).isEqualTo(50_001);
  }

  @Test
  void eachValueThatNoExecutorWritesIsRefused() throws Exception {
    final List<ShuffleReport> reports = new ArrayList<>();
    for (final long bad : NUMBERS) {
      reports.add(flows(Reports.flow("o", "peer", bad, 1, 1)));
      reports.add(flows(Reports.flow("o", "peer", 1, bad, 1)));
      reports.add(flows(Reports.flow("o", "peer", 1, 1, bad)));
      reports.add(flows(new Flow("o", "peer", "peer.host", 1, 1, 1, bad, 1)));
      reports.add(flows(new Flow("o", "peer", "peer.host", 1, 1, 1, 1, bad)));
      reports.add(contact(new Contact("o", "how", "peer", bad)));
      reports.add(use(0, List.of(), Map.of("peer", new Moved(bad, 1)), 0, Map.of()));
      reports.add(use(0, List.of(), Map.of("peer", new Moved(1, bad)), 0, Map.of()));
      reports.add(use(0, List.of(), Map.of(), bad < 0 ? bad : Long.MAX_VALUE, Map.of()));
      reports.add(use(0, List.of(), Map.of(), 0, Map.of("reason", bad)));
      reports.add(cause("reason", new Cause("code", "remedy", bad)));
      for (final Figure at : Figure.values()) {
        reports.add(memory(at, bad));
      }
      reports.add(keeps(keeper(bad, 1)));
      if (bad != ReportBounds.MAX_COUNT + 1) {
        reports.add(keeps(keeper(1, bad)));
        reports.add(new ShuffleReport("a", "", bad, null, null, null, null, null));
      }
    }
    for (final String noObject : List.of("5", "\"x\"", "[]", "true")) {
      reports.add(
          ReportJson.read(
              "{\"executorId\":\"a\",\"timeMillis\":1,\"memory\":" + noObject + "}",
              ShuffleReport.class));
    }
    reports.add(keeps(new Keeper(1, LONG, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)));
    reports.add(use(-1, List.of(), Map.of(), 0, Map.of()));
    reports.add(use(1, List.of(-1), Map.of(), 0, Map.of()));
    reports.add(use(1, IntStream.range(0, 33).boxed().toList(), Map.of(), 0, Map.of()));
    reports.add(use(1, List.of(), Map.of("?", new Moved(1, 1)), 0, Map.of()));
    reports.add(use(1, List.of(), Map.of(), 0, Map.of(LONG, 1L)));
    reports.add(cause(LONG, new Cause("code", "remedy", 1)));
    reports.add(cause("reason", new Cause(LONG, "remedy", 1)));
    reports.add(cause("reason", new Cause("code", LONG, 1)));
    reports.add(new ShuffleReport(LONG, "", 1, null, null, null, null, null));
    reports.add(new ShuffleReport(null, "", 1, null, null, null, null, null));
    reports.add(flows(Reports.flow(LONG, "peer", 1, 1, 1)));
    reports.add(flows(Reports.flow(null, "peer", 1, 1, 1)));
    reports.add(flows(Reports.flow("o", null, 1, 1, 1)));
    reports.add(flows(Reports.flow("o", "PEER", 1, 1, 1)));
    reports.add(flows(new Flow("o", "peer", "peer.slow", 1, 1, 1, 1, 1)));
    reports.add(contact(new Contact("o", "how", "peer.slow", 1)));
    reports.add(new ShuffleReport("a", LONG, 1, null, null, null, null, null));
    for (final String text : new String[] {LONG, null}) {
      reports.add(contact(new Contact(text, "how", null, 0)));
      reports.add(contact(new Contact("o", text, null, 0)));
      reports.add(advice(new Advice(text, "warn", "code", "what", "where", "remedy")));
      reports.add(advice(new Advice("check", text, "code", "what", "where", "remedy")));
      reports.add(advice(new Advice("check", "warn", "code", text, "where", "remedy")));
      reports.add(advice(new Advice("check", "warn", "code", "what", "where", text)));
    }
    reports.add(advice(new Advice("check", "warn", LONG, "what", "where", "remedy")));
    reports.add(advice(new Advice("check", "warn", "code", "what", LONG, "remedy")));
    for (final ShuffleReport report : reports) {
      final ShuffleModel model = new ShuffleModel();
      model.add(report);
      final String shown = report.toString();
      assertThat(model.snapshot().refused())
          .as(shown.substring(0, Math.min(200, shown.length())))
          .isEqualTo(1);
      assertThat(model.snapshot().isVoid() && model.snapshot().pairs().isEmpty()).isTrue();
    }
    final ShuffleModel model = new ShuffleModel();
    reports.forEach(model::add);
    model.add(Reports.full("1"));
    final String page = PageContent.of(model.snapshot(), PageQuery.ALL);
    wellFormed(page);
    assertThat(page)
        .contains("zerohop-refused", reports.size() + " parts of reports", "get over rc");
  }

  private static ShuffleReport use(
      final int shuffle,
      final List<Integer> stages,
      final Map<String, Moved> moved,
      final long waited,
      final Map<String, Long> fallbacks) {
    final ShuffleUse use = new ShuffleUse(shuffle, stages, stages, moved, waited, fallbacks, null);
    return new ShuffleReport("a", "", 1, null, List.of(use), null, null, null);
  }

  private static ShuffleReport cause(final String reason, final Cause cause) {
    final ShuffleUse use = new ShuffleUse(1, null, null, null, 0, null, Map.of(reason, cause));
    return new ShuffleReport("a", "", 1, null, List.of(use), null, null, null);
  }

  private static ShuffleReport memory(final Figure at, final long bad) {
    final Memory memory = new Memory(Figures.of(figure -> figure == at ? bad : 1), null);
    return new ShuffleReport("a", "", 1, null, null, memory, null, null);
  }

  /** What a keeper says, all of it the same number. */
  private static Keeper keeper(final long n, final long started) {
    return new Keeper(started, "1", n, n, n, n, n, n, n, n, n, n, n, n);
  }

  private static ShuffleReport keeps(final Keeper keeper) {
    final Memory memory = new Memory(Figures.of(any -> 1), keeper);
    return new ShuffleReport("a", "", 1, null, null, memory, null, null);
  }

  private static ShuffleReport contact(final Contact contact) {
    return new ShuffleReport("a", "", 1, null, null, null, List.of(contact), null);
  }

  private static ShuffleReport advice(final Advice line) {
    return new ShuffleReport("a", "", 1, null, null, null, null, List.of(line));
  }

  @Test
  void moreThanAnExecutorCountsIsRefused() {
    final int most = 501 * BlockPath.values().length;
    final ShuffleModel model = new ShuffleModel();
    model.add(
        flows(
            IntStream.range(0, 2 * most)
                .mapToObj(i -> Reports.flow("o" + i, "peer", 1, 1, 1))
                .toArray(Flow[]::new)));
    assertThat(model.snapshot().pairs()).hasSizeLessThanOrEqualTo(most);
    assertThat(model.snapshot().refused()).isGreaterThan(most / 2);
  }

  @Test
  void sumsStopAtALimitAndStayPositive() throws Exception {
    final ShuffleReport most =
        new ShuffleReport(
            "a",
            "",
            1,
            IntStream.range(0, 2_000)
                .mapToObj(i -> new Flow("o" + i, "peer", "peer.pcie", MAX, MAX, MAX, MAX, MAX))
                .toList(),
            List.of(
                new ShuffleUse(
                    1,
                    List.of(),
                    List.of(),
                    Map.of("peer", new Moved(MAX, MAX), "local", new Moved(MAX, MAX)),
                    ReportBounds.MAX_NANOS,
                    Map.of("r", MAX),
                    Map.of("r", new Cause("ZH-3034", "", MAX)))),
            new Memory(Figures.of(any -> MAX), keeper(MAX, 1)),
            null,
            null);
    final ShuffleModel model = new ShuffleModel();
    for (int i = 0; i < 50; i++) {
      model.add(most);
    }
    assertThat(model.snapshot().refused()).isZero();
    final String page = PageContent.of(model.snapshot(), PageQuery.ALL);
    wellFormed(page);
    assertThat(page).doesNotContainPattern("(customkey|data-bytes)=\"-").contains(">100 %<");
  }

  private static final long MAX = ReportBounds.MAX_COUNT;

  @Test
  void elementsThatAreNullAreLeftOut() throws Exception {
    final String line =
        "{\"Event\":\"io.zerohop.spark.ui.ShuffleReportEvent\",\"report\":{\"executorId\":\"1\","
            + "\"timeMillis\":1,\"flows\":[null],\"shuffles\":[null,{\"shuffleId\":3,"
            + "\"writers\":[null],\"readers\":null,\"moved\":{\"peer\":null},\"waitNanos\":1,"
            + "\"fallbacks\":{\"r\":null}}],\"memory\":null,\"contacts\":[null],\"advice\":[null]}}";
    assertThat(page(line.getBytes(StandardCharsets.UTF_8))).contains("1 of 1 shuffles");
  }

  @Test
  void linesWithOtherTypesAreRefusedAndTheRestIsRead() throws Exception {
    final String good = line(new ShuffleReportEvent(Reports.full("1")));
    final List<String> lines = new ArrayList<>(List.of(good));
    for (final String report :
        List.of(
            "7",
            "\"text\"",
            "[]",
            "{\"executorId\":{}}",
            "{\"executorId\":\"2\",\"timeMillis\":\"soon\"}",
            "{\"executorId\":\"2\",\"timeMillis\":1e400}",
            "{\"executorId\":\"2\",\"timeMillis\":1,\"flows\":5}",
            "{\"executorId\":\"2\",\"timeMillis\":1,\"memory\":{\"keeper\":5}}")) {
      lines.add(good.replaceFirst("(?s)\"report\":.*", "\"report\":" + report + "}"));
    }
    lines.add(line(new ShuffleReportEvent(Reports.full("3"))));
    final String page = page(String.join("\n", lines).getBytes(StandardCharsets.UTF_8));
    wellFormed(page);
    assertThat(page).contains("id=\"zerohop-refused\"", "8 parts of reports").contains(">3<");
  }

  /** What a log comes to whose bytes were changed at random; ends, and in a page within bounds. */
  static void fuzz(final byte[] log) throws Exception {
    wellFormed(new HostileLogTest().page(log));
  }

  @Test
  void damagedLogsBecomePages() throws Exception {
    final Random random = new Random(Long.getLong("zerohop.fuzz.seed", 20_261_125L));
    for (int i = 0; i < Integer.getInteger("zerohop.fuzz.cases", 1_000); i++) {
      fuzz(damaged(random));
    }
  }

  private static byte[] damaged(final Random random) {
    final List<String> lines = new ArrayList<>();
    for (int i = 0; i < 1 + random.nextInt(4); i++) {
      String line =
          random.nextInt(8) == 0
              ? line(new SparkListenerExecutorRemoved(random.nextLong(), "1", "lost"))
              : line(new ShuffleReportEvent(Reports.full("" + random.nextInt(3))));
      for (int change = random.nextInt(4); change > 0; change--) {
        line = changed(line, random);
      }
      lines.add(line);
    }
    return String.join("\n", lines).getBytes(StandardCharsets.UTF_8);
  }

  /** Puts another number, text or piece in some place. */
  private static String changed(final String line, final Random random) {
    final String number =
        random.nextBoolean()
            ? String.valueOf(NUMBERS[random.nextInt(NUMBERS.length)])
            : List.of("1e400", "null", "\"\"", "{}", "[null]", "9".repeat(50))
                .get(random.nextInt(6));
    final String text =
        List.of("<script>", LONG, "\\u0000", "\\ud800", "\\\"", "peer", "..", "")
            .get(random.nextInt(8));
    final int at = random.nextInt(line.length());
    final int end = Math.min(line.length(), at + random.nextInt(40));
    return switch (random.nextInt(4)) {
      case 0 -> replaceOne(line, "(?<=:)-?\\d+", number, at);
      case 1 -> replaceOne(line, "(?<=\":\")[^\"]*", text, at);
      case 2 -> line.substring(0, at) + line.substring(end);
      default -> line.substring(0, end) + line.substring(at);
    };
  }

  /** Replaces the first match behind a place. */
  private static String replaceOne(
      final String line, final String what, final String by, final int from) {
    final var found = java.util.regex.Pattern.compile(what).matcher(line);
    return found.find(from)
        ? line.substring(0, found.start()) + by + line.substring(found.end())
        : line;
  }

  @Test
  void manyEventsTakeBoundedMemory() throws Exception {
    replay(200_000);
  }

  @Test
  @Tag("slow")
  @Timeout(900) // Spark's parser alone takes some 20 us an event.
  void tenMillionEventsTakeBoundedMemory() throws Exception {
    replay(10_000_000);
  }

  /** Each event has names, reasons and ids of its own. */
  private void replay(final int events) throws Exception {
    final long before = heap();
    final String page = page(new Lines(events, HostileLogTest::event));
    assertThat(heap() - before).isLessThan(MAX_HEAP);
    wellFormed(page);
    assertThat(page).contains("zerohop-pairs", "are not kept");
  }

  private static String event(final int i) {
    final String path = BlockPath.values()[i % BlockPath.values().length].label();
    final String id = "executor-" + i;
    return i % 5 == 4
        ? line(new SparkListenerExecutorRemoved(i, "executor-" + (i - 1), "lost"))
        : "{\"Event\":\"io.zerohop.spark.ui.ShuffleReportEvent\",\"report\":{\"executorId\":\""
            + id
            + "\",\"timeMillis\":"
            + i
            + ",\"flows\":[{\"owner\":\"of-"
            + id
            + "\",\"path\":\""
            + path
            + "\",\"blocks\":1,\"bytes\":1,\"busyMillis\":1},{\"owner\":\"o\",\"path\":\"unknown-"
            + id
            + "\",\"blocks\":1,\"bytes\":1,\"busyMillis\":1}],\"shuffles\":[{\"shuffleId\":"
            + i
            + ",\"writers\":["
            + i
            + "],\"readers\":[],\"moved\":{},\"waitNanos\":1,\"fallbacks\":{\"since "
            + id
            + "\":1}}],\"memory\":{\"hostUsed\":1},\"contacts\":[{\"owner\":\"o\",\"how\":\"by "
            + id
            + "\"}],\"advice\":[{\"check\":\"c\",\"verdict\":\"warn\",\"what\":\"w\",\"mend\":\"m "
            + id
            + "\"}]}}";
  }

  private static long heap() {
    final Runtime runtime = Runtime.getRuntime();
    for (int i = 0; i < 3; i++) {
      System.gc();
    }
    return runtime.totalMemory() - runtime.freeMemory();
  }

  /** Lines that are made as they are read. */
  private static final class Lines extends InputStream {
    private final int count;
    private final IntFunction<String> make;
    private int next;
    private ByteArrayInputStream line = new ByteArrayInputStream(new byte[0]);

    Lines(final int count, final IntFunction<String> make) {
      this.count = count;
      this.make = make;
    }

    private boolean isAtEnd() {
      while (line.available() == 0 && next < count) {
        line =
            new ByteArrayInputStream((make.apply(next++) + "\n").getBytes(StandardCharsets.UTF_8));
      }
      return line.available() == 0;
    }

    @Override
    public int read() {
      return isAtEnd() ? -1 : line.read();
    }

    @Override
    public int read(final byte[] to, final int offset, final int length) {
      return isAtEnd() ? -1 : line.read(to, offset, length);
    }
  }
}
