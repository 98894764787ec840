package io.zerohop.spark.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.spark.doctor.RateCheck.Rate;
import io.zerohop.spark.log.SparkCode;
import java.util.List;
import org.junit.jupiter.api.Test;

class ReportTest {
  private static final Finding OK = Item.JAVA.ok("Java 17");
  private static final Finding SKIP = Item.DRIVER.skip("no GPU");
  private static final Finding WARN =
      Item.FILES.warn(
          SparkCode.POOL_SMALL
              .says("only \"100\"\tfiles \\ few")
              .at("here")
              .because("so; it is")
              .remedy("raise it"));
  private static final Finding FAIL = Item.SOCKETS.fail("refused", "chmod 700");

  private static Report of(final Finding... findings) {
    final Rate rate = new Rate("nvlink", "cuda:0", "cuda:1", 123.456, 360);
    return new Report(List.of(new Report.Section("host a", List.of(findings), List.of(rate))));
  }

  @Test
  void theWorstVerdictDecidesTheExitStatus() {
    assertThat(of(OK).exitStatus()).isZero();
    assertThat(of(OK, SKIP).exitStatus()).isZero();
    assertThat(of(WARN, OK).exitStatus()).isEqualTo(1);
    assertThat(of(FAIL, WARN, OK).exitStatus()).isEqualTo(2);
  }

  @Test
  void textHasALineForEachFindingAndWhatMendsIt() {
    assertThat(of(OK, FAIL).text().lines())
        .containsSubsequence(
            "host a",
            "ok   java         Java 17",
            "fail sockets      refused",
            "                  -> chmod 700")
        .anyMatch(line -> line.contains("nvlink") && line.contains("123.5"))
        .endsWith("1 ok, 0 skipped, 0 to look at, 1 failed");
  }

  @Test
  void jsonIsReadBackAsItWas() throws Exception {
    final JsonNode read = new ObjectMapper().readTree(of(OK, WARN).json());
    assertThat(read.get("verdict").asText()).isEqualTo("warn");
    final JsonNode process = read.get("processes").get(0);
    assertThat(process.get("process").asText()).isEqualTo("host a");
    final JsonNode warning = process.get("findings").get(1);
    assertThat(warning.get("check").asText()).isEqualTo("files");
    assertThat(warning.get("code").asText()).isEqualTo("ZH-2001");
    assertThat(warning.get("what").asText()).isEqualTo("only \"100\" files \\ few: so; it is");
    assertThat(warning.get("where").asText()).isEqualTo("here");
    assertThat(warning.get("remedy").asText()).isEqualTo("raise it");
    assertThat(warning.get("mend").asText()).as("as in 0.2.0").isEqualTo("raise it");
    assertThat(process.get("rates").get(0).get("gigabytesPerSecond").asDouble()).isEqualTo(123.5);
  }

  @Test
  void aFailureHasItsOwnRemedyOrTheOneOfTheCheck() {
    final Message refused = Message.of("it is refused; really");
    final ZerohopException failure =
        new ZerohopException(Category.FALLBACK, refused.remedy("set a key"));
    assertThat(Item.SOCKETS.fail(failure, "else").message()).isEqualTo(refused.remedy("set a key"));
    assertThat(
            Item.SOCKETS.fail(new ZerohopException(Category.FALLBACK, refused), "else").message())
        .isEqualTo(refused.remedy("else"));
  }

  @Test
  void textNamesThePlaceAndTheCodeAndHasTheRemedyOnALineOfItsOwn() {
    assertThat(of(WARN).text().lines())
        .containsSubsequence(
            "warn files        only \"100\" files \\ few (here): so; it is [ZH-2001]",
            "                  -> raise it");
  }
}
