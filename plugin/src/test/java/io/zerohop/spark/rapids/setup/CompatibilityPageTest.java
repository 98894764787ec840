package io.zerohop.spark.rapids.setup;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.zerohop.spark.rapids.api.RapidsMember.RapidsFeature;
import io.zerohop.spark.rapids.setup.RapidsMode.RapidsRelease;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/** The tables of docs/compatibility.md are the matrix, with what measurements have seen of it. */
class CompatibilityPageTest {
  private static final Path PAGE = Path.of("../docs/compatibility.md");
  private static final Path BOUND = Path.of("../docs/measurements/compatibility.json");
  private static final Path ON_GPUS = Path.of("../docs/measurements/gpu_compatibility.json");
  private static final String BEGIN = "<!-- releases:begin -->\n";
  private static final String END = "<!-- releases:end -->\n";
  private static final ObjectMapper JSON = new ObjectMapper();

  private static JsonNode matrix() throws IOException {
    try (InputStream in = CompatibilityPageTest.class.getResourceAsStream(RapidsRelease.MATRIX)) {
      return JSON.readTree(in);
    }
  }

  /** Rows of a measurement; none if nobody has made it yet. */
  private static List<JsonNode> rows(final Path measurement) throws IOException {
    final List<JsonNode> rows = new ArrayList<>();
    if (Files.exists(measurement)) {
      JSON.readTree(measurement.toFile()).get("rows").forEach(rows::add);
    }
    return rows;
  }

  /** Regenerate with {@code -Dzerohop.docs.write=true}. */
  @Test
  void thePageIsWhatTheMatrixAndTheMeasurementsSay() throws IOException {
    final String page = Files.readString(PAGE);
    final int from = page.indexOf(BEGIN) + BEGIN.length();
    final String expected =
        page.substring(0, from)
            + tables(matrix(), rows(BOUND), rows(ON_GPUS))
            + page.substring(page.indexOf(END));
    if (Boolean.getBoolean("zerohop.docs.write")) {
      Files.writeString(PAGE, expected);
    }
    assertThat(Files.readString(PAGE))
        .as("%s is stale; run mvn -pl plugin -am test -Dzerohop.docs.write=true", PAGE)
        .isEqualTo(expected);
  }

  @Test
  void whatNobodyHasRunIsNotCalledSeen() throws IOException {
    assertThat(tables(matrix(), List.of(), List.of()))
        .contains("| 26.08.1 | 13 | 4.1.3 | 2.13 | not bound | not run |")
        .doesNotContain("| bound |");
  }

  @Test
  void aCheckOnAGpuCountsOnlyIfAllOfItIsEqual() throws IOException {
    final String cell =
        "\"rapids\":\"26.08.1\",\"scala\":\"2.13\",\"cuda\":13,\"spark\":\"4.1.3\",\"cases\":48";
    final JsonNode right = JSON.readTree("{\"case\":\"check\"," + cell + ",\"equal\":48}");
    final JsonNode wrong = JSON.readTree("{\"case\":\"paths\"," + cell + ",\"equal\":47}");
    final JsonNode leaks =
        JSON.readTree("{\"case\":\"faults\"," + cell + ",\"equal\":48,\"exit_status\":1}");
    assertThat(tables(matrix(), List.of(), List.of(right, wrong, leaks)))
        .contains(
            "| 26.08.1 | 13 | 4.1.3 | 2.13 | not bound | check 48; **faults 48 of 48 (failed)**;"
                + " **paths 47 of 48** |");
  }

  private static String tables(
      final JsonNode matrix, final List<JsonNode> bound, final List<JsonNode> onGpus) {
    final StringBuilder to = new StringBuilder();
    to.append("| RAPIDS | CUDA | Spark | Scala | classes | tests on a GPU |\n");
    to.append("| --- | --- | --- | --- | --- | --- |\n");
    for (final JsonNode cell : matrix.get("cells")) {
      final boolean binds =
          bound.stream().anyMatch(row -> isOf(row, cell) && row.get("bound").asBoolean());
      to.append(
          String.format(
              Locale.ROOT,
              "| %s | %s | %s | %s | %s | %s |%n",
              cell.get("rapids").asText(),
              cell.get("cuda").asText(),
              cell.get("spark").asText(),
              cell.get("scala").asText(),
              binds ? "bound" : "not bound",
              seen(cell, onGpus)));
    }
    to.append("\n| release | basis | cudf's metadata begins with | unavailable features |\n");
    to.append("| --- | --- | --- | --- |\n");
    to.append("| before ").append(RapidsRelease.all().get(0).name());
    to.append(" | not supported | | |\n");
    for (final JsonNode release : matrix.get("releases")) {
      to.append(
          String.format(
              Locale.ROOT,
              "| %s | %s | %s | %s |%n",
              release.get("release").asText(),
              release.get("basis").asText().equals("jar") ? "jar" : "source only, not run",
              release.get("metadata").asText().equals("stub")
                  ? "an entry of 40 bytes"
                  : "a header of 16 bytes",
              without(release.get("without"))));
    }
    to.append("| later | probe at start | checked at start | what the probe does not find |\n");
    return to.toString();
  }

  private static boolean isOf(final JsonNode row, final JsonNode cell) {
    for (final String key : List.of("rapids", "scala", "cuda", "spark")) {
      if (!row.path(key).asText().equals(cell.get(key).asText())) {
        return false;
      }
    }
    return true;
  }

  private static String seen(final JsonNode cell, final List<JsonNode> onGpus) {
    final TreeSet<String> checks = new TreeSet<>();
    for (final JsonNode row : onGpus) {
      if (isOf(row, cell)) {
        final int cases = row.get("cases").asInt();
        final int equal = row.get("equal").asInt();
        final String name = row.get("case").asText().replace('_', ' ');
        checks.add(
            equal == cases && cases > 0 && row.path("exit_status").asInt() == 0
                ? name + " " + cases
                : "**"
                    + name
                    + " "
                    + equal
                    + " of "
                    + cases
                    + (equal == cases ? " (failed)" : "")
                    + "**");
      }
    }
    final List<String> sound = checks.stream().filter(one -> !one.startsWith("*")).toList();
    final List<String> others = checks.stream().filter(one -> one.startsWith("*")).toList();
    final List<String> all = new ArrayList<>(sound);
    all.addAll(others);
    return all.isEmpty() ? "not run" : String.join("; ", all);
  }

  private static String without(final JsonNode features) {
    final List<String> words = new ArrayList<>();
    features
        .fieldNames()
        .forEachRemaining(
            name ->
                words.add(
                    RapidsFeature.valueOf(name).words()
                        + " ("
                        + features.get(name).asText()
                        + ")"));
    return String.join("; ", words);
  }
}
