package io.zerohop.spark.ui;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.StringReader;
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
    assertThat(text(page, "//table[@id='zerohop-paths']//tr[td='peer']"))
        .isEqualTo("peer204.77 MiB100 %");
    assertThat(text(page, "//table[@id='zerohop-heat']//tr[th='1']/td[2]"))
        .contains("peer 4.77 MiB 0.50 GB/s")
        .startsWith("\u25AE\u25AE\u25AE\u25AE");
    assertThat(text(page, "//table[@id='zerohop-shuffles']/tbody/tr/td[9]")).isEqualTo("300 B");
    assertThat(text(page, "//table[@id='zerohop-shuffles']/tbody/tr")).contains("2.5 ms");
    assertThat(text(page, "//table[@id='zerohop-shuffles']//td[11]"))
        .startsWith("5 blocks: it could not be reached: <timeout> & \"more\"");
    assertThat(text(page, "//table[@id='zerohop-memory']//td[2]")).isEqualTo("2.00 MiB");
    assertThat(text(page, "//table[@id='zerohop-contacts']")).contains("get over rc");
    assertThat(text(page, "//table[@id='zerohop-shuffles']//td[2]/a/@href"))
        .isEqualTo("../stages/stage/?id=7&attempt=0");
  }

  @Test
  void whatIsToBeMendedIsInSightAndTheRestFoldedAway() throws Exception {
    assertThat(text(page(PageQuery.ALL), "count(//table[@id='zerohop-doctor-all'])"))
        .isEqualTo("0");
    model.add(Reports.full("1"));
    model.add(Reports.full("2"));
    final Document page = page(PageQuery.ALL);
    assertThat(text(page, "//table[@id='zerohop-doctor']/tbody"))
        .isEqualTo("warnmemlocktoo <little> (here & there) [ZH-2001]raise it1, 2");
    assertThat(text(page, "//details/table[@id='zerohop-doctor-all']/tbody"))
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
    assertThat(text(page(query("local", "")), "//table[@id='zerohop-paths']"))
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
    IntStream.range(0, 300).forEach(i -> model.add(Reports.full("executor <" + i + ">")));
    IntStream.range(10, 900).forEach(i -> model.add(Reports.ofShuffle(i)));
    final Document page = page(PageQuery.ALL);
    assertThat(text(page, "count(//table[@id='zerohop-heat']/tbody/tr)"))
        .isEqualTo(String.valueOf(HeatMap.MOST_EXECUTORS));
    assertThat(text(page, "count(//table[@id='zerohop-pairs']/tbody/tr)"))
        .isEqualTo(String.valueOf(HeatMap.MOST_ROWS));
    assertThat(text(page, "count(//table[@id='zerohop-shuffles']/tbody/tr)"))
        .isEqualTo(String.valueOf(ShuffleTable.MOST_ROWS));
  }

  @Test
  void sizesAndTimesAreInWords() {
    assertThat(Html.bytes(1023)).isEqualTo("1023 B");
    assertThat(Html.bytes(1024)).isEqualTo("1.00 KiB");
    assertThat(Html.bytes(Long.MAX_VALUE)).isEqualTo("8192.0 PiB");
    assertThat(Html.rate(3_000_000_000L, 1_000)).isEqualTo("3.00 GB/s");
    assertThat(Html.rate(1, 0)).isEmpty();
    assertThat(Html.duration(1_500_000_000)).isEqualTo("1.5 s");
    assertThat(HeatMap.level(0, 0)).isEqualTo(1);
    assertThat(HeatMap.level(51, 100)).isEqualTo(3);
    assertThat(HeatMap.level(100, 100)).isEqualTo(4);
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
