package io.zerohop.spark.ui;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.block.Link;
import io.zerohop.spark.report.Advice;
import io.zerohop.spark.report.ReportCounters;
import io.zerohop.spark.report.ShuffleReport;
import io.zerohop.spark.report.ShuffleReport.Cause;
import io.zerohop.spark.report.ShuffleReport.Contact;
import io.zerohop.spark.report.ShuffleReport.Flow;
import io.zerohop.spark.report.ShuffleReport.Moved;
import io.zerohop.spark.report.ShuffleReport.ShuffleUse;
import io.zerohop.spark.ui.TimeLine.Times;
import java.io.StringReader;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.xpath.XPathFactory;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Document;
import org.xml.sax.InputSource;

class PageContentTest {
  private final ShuffleModel model = new ShuffleModel();

  @Test
  void theNumbersAreOnThePage() throws Exception {
    model.add(Reports.full("1"));
    final Document page = page(PageQuery.ALL);
    assertThat(text(page, "//table[@id='zerohop-links']//tr[td='peer']"))
        .isEqualTo("same node, link not knownsame nodepeer204.8 MiB100 %10 msnot known");
    assertThat(text(page, "//table[@id='zerohop-nodes']//tr[th='1']/td[2]")).isEqualTo("4.8 MiB");
    assertThat(text(page, "//table[@id='zerohop-shuffles']/tbody/tr/td[9]")).isEqualTo("300 B");
    assertThat(text(page, "//table[@id='zerohop-shuffles']/tbody/tr")).contains("2 ms");
    assertThat(text(page, "//table[@id='zerohop-shuffles']//td[11]"))
        .startsWith("5 blocks: it could not be reached: <timeout> & \"more\"");
    assertThat(text(page, "//table[@id='zerohop-pools']//td[2]")).isEqualTo("2.0 MiB");
    assertThat(text(page, "//table[@id='zerohop-contacts']")).contains("get over rc");
    assertThat(text(page, "//table[@id='zerohop-shuffles']//td[2]/a/@href"))
        .isEqualTo("../stages/stage/?id=7&attempt=0");
  }

  @Test
  void everyLinkHasAColourInLightAndInDarkMode() {
    for (final Link link : Link.values()) {
      final String name = link.label().replace('.', '-');
      assertThat(Html.PageStyle.CSS.split("--" + name + ": #", -1)).as(name).hasSize(3);
    }
  }

  @Test
  void ratesAreShownWhereLinksWereFullBesideWhatIsExpected() throws Exception {
    model.add(
        new ShuffleReport(
            "1",
            "",
            1,
            List.of(
                new Flow("2", "peer", "peer.nvlink", 9, 1L << 40, 5_000, 1L << 39, 2_000),
                new Flow("2", "peer", "peer.host", 9, 1L << 20, 10, 0, 0)),
            null,
            null,
            List.of(new Contact("2", "how", "peer.nvlink", 1L << 38)),
            null));
    final Document page = page(PageQuery.ALL);
    assertThat(text(page, "//table[@id='zerohop-links']//tr[td='NVLink']"))
        .endsWith("5 s256.0 GiB/s256.0 GiB/s100 %");
    assertThat(text(page, "//table[@id='zerohop-links']//tr[td='NVLink']/td[10]/@class"))
        .isEqualTo("r-ok");
    assertThat(text(page, "//table[@id='zerohop-links']//tr[td='shared host memory']"))
        .endsWith("10 ms1.9 GiB/s");
    assertThat(text(page, "//table[@id='zerohop-nodes']//tr[th='1']/td[2]"))
        .isEqualTo("1.0 TiB256.0 GiB/s (100 %)");
    assertThat(text(page, "//table[@id='zerohop-nodes']//tr[th='1']/td[2]/@class"))
        .isEqualTo("r-ok");
    assertThat(text(page, "count(//div[@id='zerohop-bar']/span)")).isEqualTo("2");
  }

  @Test
  void reasonsForFallbacksHaveTheirRemedyAndALinkToTheRunbook() throws Exception {
    final String reason = "it does not hold them in memory";
    model.add(fellBack(1, reason, new Cause("ZH-6033", "", 768)));
    model.add(fellBack(2, reason, new Cause("ZH-6033", "", 768)));
    model.add(fellBack(3, "it has <another> reason", new Cause("\"><b>", "set <a key>", 1)));
    final Document page = page(PageQuery.ALL);
    final String row = "//table[@id='zerohop-reasons']/tbody/tr";
    assertThat(text(page, row + "[1]")).startsWith("1.5 KiB42it does not hold them in memory");
    assertThat(text(page, row + "[1]/td[5]/a/@href")).isEqualTo("runbook/#zh-6033");
    assertThat(text(page, row + "[1]/td[6]"))
        .contains("set spark.executor.memoryOverhead in a container");
    assertThat(text(page, row + "[2]/td[5]")).isEqualTo("\"><b>");
    assertThat(text(page, row + "[2]/td[6]")).isEqualTo("set <a key>");
    assertThat(text(page, "count(" + row + "[2]//a)")).isEqualTo("0");
    assertThat(text(page, "//div[@id='zerohop-verdict']/@class")).contains("LOOK");
    assertThat(Runbook.all()).hasSizeGreaterThan(100);
    assertThat(Runbook.page()).contains("<tr id=\"zh-6033\">").doesNotContain("](");
  }

  private static ShuffleReport fellBack(final int shuffle, final String reason, final Cause cause) {
    return new ShuffleReport(
        "1",
        "",
        1,
        List.of(Reports.flow("2", "staged", 2, 768, 10)),
        List.of(
            new ShuffleUse(
                shuffle,
                null,
                null,
                Map.of("staged", new Moved(2, 768)),
                0,
                Map.of(reason, 2L),
                Map.of(reason, cause))),
        null,
        null,
        null);
  }

  @Test
  void nodesComeFirstAndOneUnfoldsIntoItsExecutors() throws Exception {
    IntStream.range(0, 8)
        .forEach(
            i -> {
              model.isOn("" + i, i < 4 ? "host-a" : "host-b");
              final Flow[] flows =
                  IntStream.range(0, 8)
                      .mapToObj(j -> Reports.flow("" + j, "peer", 1, 1 << 20, 10))
                      .toArray(Flow[]::new);
              model.add(new ShuffleReport("" + i, "", 1, List.of(flows), null, null, null, null));
            });
    final Document nodes = page(PageQuery.ALL);
    assertThat(text(nodes, "//table[@id='zerohop-nodes']/tbody"))
        .isEqualTo("host-a4 executors16.0 MiB16.0 MiBhost-b4 executors16.0 MiB16.0 MiB");
    final Document one = page(PageQuery.of(Map.of("node", "host-b")::get));
    assertThat(text(one, "//table[@id='zerohop-nodes']/thead"))
        .isEqualTo("reader \u2193 owner \u21924567host-a");
    assertThat(text(one, "//table[@id='zerohop-nodes']/tbody/tr[1]"))
        .isEqualTo("41.0 MiB1.0 MiB1.0 MiB1.0 MiB4.0 MiB");
  }

  @Test
  void whatIsSummedUpInReportsIsNoNode() throws Exception {
    model.isOn("1", "host-a");
    model.isOn("2", "host-b");
    final List<Flow> flows =
        List.of(
            Reports.flow("2", "peer", 1, 1 << 20, 10),
            Reports.flow(ReportCounters.OTHERS, "peer", 1, 1 << 20, 10));
    model.add(new ShuffleReport("1", "", 1, flows, null, null, null, null));
    for (final String node : List.of("", "all others")) {
      final Document page = page(PageQuery.of(Map.of("node", node)::get));
      assertThat(text(page, "//table[@id='zerohop-nodes']/thead"))
          .isEqualTo("reader \u2193 owner \u2192host-ahost-ball others");
      assertThat(text(page, "//table[@id='zerohop-nodes']/tbody"))
          .isEqualTo("host-a1 executor1.0 MiB1.0 MiBhost-b1 executorall others");
    }
  }

  @Test
  void tablesHavePagesAndAnOrderAndIdsNoSeparators() throws Exception {
    IntStream.range(0, 250).forEach(i -> model.add(Reports.ofShuffle(1_000 + i)));
    final Document first = page(PageQuery.ALL);
    assertThat(text(first, "count(//table[@id='zerohop-shuffles']/tbody/tr)")).isEqualTo("100");
    assertThat(text(first, "//table[@id='zerohop-shuffles']/tbody/tr[1]/td[1]")).isEqualTo("1000");
    assertThat(text(first, "//div[@id='zerohop-shuffles-box']/form")).contains("3 Pages.");
    final Map<String, String> asked =
        Map.of("shuffles.page", "3", "shuffles.sort", "1", "shuffles.desc", "true", "q", "");
    final Document last = page(PageQuery.of(asked::get));
    assertThat(text(last, "count(//table[@id='zerohop-shuffles']/tbody/tr)")).isEqualTo("50");
    assertThat(text(last, "//table[@id='zerohop-shuffles']/tbody/tr[50]/td[1]")).isEqualTo("1000");
    assertThat(text(last, "//div[@id='zerohop-shuffles-box']/form/a/@href"))
        .isEqualTo("?shuffles.sort=1&shuffles.desc=true&shuffles.page=2#zerohop-shuffles");
    final Map<String, String> wrong =
        Map.of("shuffles.page", "-7", "shuffles.sort", "9999", "shuffles.pageSize", "1e9");
    assertThat(text(page(PageQuery.of(wrong::get)), "count(//table[@id='zerohop-shuffles']//td)"))
        .isEqualTo("1100");
  }

  @Test
  void whatIsToBeMendedIsInSightAndTheRestFoldedAway() throws Exception {
    assertThat(text(page(PageQuery.ALL), "count(//table[@id='zerohop-doctor-all'])"))
        .isEqualTo("0");
    model.add(Reports.full("1"));
    model.add(Reports.full("2"));
    final Document page = page(PageQuery.ALL);
    assertThat(text(page, "//table[@id='zerohop-doctor']/tbody"))
        .isEqualTo("warnmemlocktoo <little> (here & there) ZH-2001raise it1, 2");
    assertThat(text(page, "//table[@id='zerohop-doctor']/tbody//a/@href"))
        .isEqualTo("runbook/#zh-2001");
    assertThat(text(page, "//details//table[@id='zerohop-doctor-all']/tbody"))
        .contains("Spark 4", "too <little>");
  }

  @Test
  void anEmptyPageSaysWhenReportsBegin() throws Exception {
    assertThat(text(page(PageQuery.ALL), "//p[@id='zerohop-empty']")).contains("first task");
  }

  @Test
  void filtersLeaveWhatTheyName() throws Exception {
    model.add(Reports.full("1"));
    model.add(Reports.ofShuffle(5));
    assertThat(shuffles(query("", ""))).isEqualTo("45");
    assertThat(shuffles(query("peer", ""))).isEqualTo("4");
    assertThat(shuffles(query("ucx", ""))).isEmpty();
    assertThat(shuffles(query("", "5"))).isEqualTo("5");
    assertThat(shuffles(query("", " Could Not "))).isEqualTo("4");
    assertThat(shuffles(query("", "8"))).isEqualTo("4");
    assertThat(text(page(query("local", "")), "//table[@id='zerohop-links']"))
        .doesNotContain("peer");
  }

  @Test
  void whatAUserTypesIsTextOnly() throws Exception {
    final Document page = page(query("\"><script>", "\"/><script>alert(1)</script>"));
    assertThat(text(page, "count(//script)")).isEqualTo("0");
    assertThat(text(page, "//input/@value")).isEqualTo("\"/><script>alert(1)</script>");
  }

  @Test
  void aLargeApplicationsPageIsBounded() throws Exception {
    IntStream.range(0, 300).forEach(i -> model.isOn("executor <" + i + ">", "host " + i));
    IntStream.range(0, 300).forEach(i -> model.add(Reports.full("executor <" + i + ">")));
    IntStream.range(10, 900).forEach(i -> model.add(Reports.ofShuffle(i)));
    final Document page = page(PageQuery.ALL);
    assertThat(text(page, "count(//table[@id='zerohop-nodes']/tbody/tr)"))
        .isEqualTo(String.valueOf(NodeMatrix.MAX_ROWS + 1));
    assertThat(text(page, "//table[@id='zerohop-nodes']/tbody/tr[last()]/th"))
        .isEqualTo("all others");
    assertThat(text(page, "count(//table[@id='zerohop-pairs']/tbody/tr)")).isEqualTo("100");
  }

  @Test
  void sizesAndTimesAreInWords() {
    assertThat(Html.bytes(1023)).isEqualTo("1023 B");
    assertThat(Html.bytes(1024)).isEqualTo("1.0 KiB");
    assertThat(Html.bytes(Long.MAX_VALUE)).isEqualTo("8192.0 PiB");
    assertThat(Html.rate(3L << 30, 2_000)).isEqualTo("1.5 GiB/s");
    assertThat(Html.rate(1, 0)).isEmpty();
    assertThat(Html.duration(99)).isEqualTo("99 ms");
    assertThat(Html.duration(1_600)).isEqualTo("2 s");
    assertThat(Html.duration(90_000)).isEqualTo("1.5 min");
    assertThat(Html.duration(5_400_000)).isEqualTo("1.5 h");
  }

  @Test
  void aCellSaysWhatTookTheFallbackAndWhichOfBothColoursIt() throws Exception {
    model.isOn("1", "host-a");
    model.isOn("2", "host-b");
    final List<Flow> flows =
        List.of(
            new Flow("2", "peer", "peer.host", 9, 600 << 20, 5_000, 190_000_000, 100),
            Reports.flow("2", "staged", 1, 400 << 20, 10),
            new Flow("1", "peer", "peer.host", 9, 1 << 20, 5_000, 10_000_000, 100));
    model.add(new ShuffleReport("1", "", 1, flows, null, null, null, null));
    final Document page = page(PageQuery.ALL);
    final String cell = "//table[@id='zerohop-nodes']//tr[starts-with(th, 'host-a')]/td";
    assertThat(text(page, cell + "[2]"))
        .isEqualTo("1000.0 MiB1.8 GiB/s (95 %)400.0 MiB fallback (40 %)");
    assertThat(text(page, cell + "[2]/b")).isEqualTo("400.0 MiB fallback (40 %)");
    assertThat(text(page, cell + "[2]/@class")).isEqualTo("r-mid3");
    assertThat(text(page, cell + "[2]/@title"))
        .isEqualTo("shared host memory 600.0 MiB, fallback 400.0 MiB. Dark orange by its fallback");
    assertThat(text(page, cell + "[1]/b")).isEqualTo("95.4 MiB/s (5 %)");
    assertThat(text(page, "//p[@id='zerohop-worst']"))
        .isEqualTo(
            "Most fallback: host-a from host-b, 400.0 MiB fallback (40 %)."
                + " Lowest rate: host-a from host-a, 95.4 MiB/s (5 %).");
    assertThat(text(page, "//ul[@id='zerohop-shades']"))
        .contains("yellow: below 50 % of the expected rate, or 5 % fallback");
  }

  @Test
  void theNodesOfManyExecutorsAddUp() throws Exception {
    IntStream.range(0, 150).forEach(i -> model.isOn("" + i, "host-" + i / 10));
    for (int i = 0; i < 150; i++) {
      final List<Flow> flows =
          IntStream.range(0, 150)
              .mapToObj(owner -> Reports.flow("" + owner, "sent", 1, 1 << 20, 10))
              .toList();
      model.add(new ShuffleReport("" + i, "", 1, flows, null, null, null, null));
    }
    final Document page = page(PageQuery.ALL);
    final String cells = "//table[@id='zerohop-nodes']//td";
    assertThat(text(page, "count(" + cells + ")")).isEqualTo("225");
    assertThat(text(page, "count(" + cells + "[@data-bytes='" + (100 << 20) + "'])"))
        .isEqualTo("225");
    assertThat(text(page, "//table[@id='zerohop-nodes']/tbody/tr[1]/th"))
        .isEqualTo("host-010 executors");
  }

  @Test
  void onOneNodeTheMatrixIsOfExecutors() throws Exception {
    model.add(Reports.full("1"));
    assertThat(text(page(PageQuery.ALL), "//h4[starts-with(., 'Between')]"))
        .isEqualTo("Between executors: bytes and rates of each pair");
  }

  @Test
  void whatTheDoctorFoundStandsBesideTheReasonThatItExplains() throws Exception {
    model.add(fellBack(1, "it does not hold them", new Cause("ZH-6033", "", 768)));
    final Advice small = new Advice("sizes", "warn", "ZH-2001", "a pool", "", "set a key");
    model.add(ShuffleReportEvent.of("driver", List.of(small)).report());
    assertThat(text(page(PageQuery.ALL), "//table[@id='zerohop-reasons']//td[6]/div"))
        .isEqualTo("The doctor found the cause, ZH-2001: set a key.");
  }

  @Test
  void chartsHaveRoundValuesAndTimes() throws Exception {
    assertThat(TimeLine.step(33.5 * (1 << 30))).isEqualTo(10.0 * (1 << 30));
    assertThat(TimeLine.step(2_000)).isEqualTo(512);
    assertThat(TimeLine.step(999)).isEqualTo(500);
    final long minute = 60_000;
    assertThat(Times.ticks(7, 61_000, 4)).containsExactly(30_000L, 60_000L);
    assertThat(Times.ticks(0, 90 * minute, 4)).hasSizeBetween(2, 4);
    assertThat(Times.ticks(0, 30 * 24 * 60 * minute, 4)).hasSizeBetween(2, 4);
    model.add(Reports.full("1"));
    model.add(Reports.ofMemory("1", 60_000, 3 << 20));
    final Document page = page(PageQuery.ALL);
    final String chart = "//div[@id='zerohop-time']/div[@class='chart'][2]";
    assertThat(text(page, chart + "/div[@class='values']/span[last()]")).isEqualTo("10 MiB");
    assertThat(text(page, chart + "/div[@class='names']/span[last()]")).isEqualTo("files");
    assertThat(text(page, "count(" + chart + "//polyline)")).isEqualTo("3");
  }

  private static PageQuery query(final String path, final String text) {
    return PageQuery.of(Map.of("path", path, "q", text)::get);
  }

  private String shuffles(final PageQuery query) throws Exception {
    final Document page = page(query);
    final int rows =
        Integer.parseInt(text(page, "count(//table[@id='zerohop-shuffles']/tbody/tr)"));
    final StringBuilder ids = new StringBuilder();
    for (int i = 1; i <= rows; i++) {
      ids.append(text(page, "//table[@id='zerohop-shuffles']/tbody/tr[" + i + "]/td[1]"));
    }
    return ids.toString();
  }

  private Document page(final PageQuery query) throws Exception {
    final String html = "<html>" + PageContent.of(model.snapshot(), query) + "</html>";
    return DocumentBuilderFactory.newInstance()
        .newDocumentBuilder()
        .parse(new InputSource(new StringReader(html)));
  }

  private static String text(final Document page, final String path) throws Exception {
    return XPathFactory.newInstance().newXPath().evaluate(path, page);
  }
}
