package io.zerohop.spark.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.doctor.SparkChecks.SparkCheck;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** docs/doctor.md has every check, and what is said of versions is what is tested. */
class DoctorPageTest {
  private static final Path REPOSITORY = Path.of("..");
  private static final Path PAGE = REPOSITORY.resolve("docs/doctor.md");
  private static final String BEGIN = "<!-- checks:begin -->\n";
  private static final String END = "<!-- checks:end -->\n";

  private static String table() {
    return Arrays.stream(Item.values())
        .map(item -> "| `" + item.key() + "` | " + item.looks() + " | " + item.verdicts() + " |\n")
        .collect(
            Collectors.joining("", "| check | subject | verdicts |\n| --- | --- | --- |\n", ""));
  }

  @Test
  void thePageHasTheTableOfChecks() throws IOException {
    final String page = Files.readString(PAGE);
    final String before = page.substring(0, page.indexOf(BEGIN) + BEGIN.length());
    final String after = page.substring(page.indexOf(END));
    final String expected = before + table() + after;
    if (Boolean.getBoolean("zerohop.docs.write")) {
      Files.writeString(PAGE, expected);
    }
    assertThat(Files.readString(PAGE))
        .as("stale; mvn -B -pl plugin -am test -Dzerohop.docs.write=true writes it")
        .isEqualTo(expected);
  }

  @Test
  void theSparksThatAreNamedAreThoseOfTheTests() throws IOException {
    final List<String> others;
    try (Stream<Path> folders = Files.list(REPOSITORY.resolve("integration-tests/sparks"))) {
      others =
          folders
              .filter(Files::isDirectory)
              .map(folder -> folder.getFileName().toString())
              .filter(name -> name.contains("_"))
              .toList();
    }
    final String own = SparkChecks.version();
    final List<String> tested =
        Stream.concat(others.stream(), Stream.of(own))
            .map(version -> version.substring(0, version.indexOf('.', 2)))
            .distinct()
            .sorted()
            .toList();
    assertThat(SparkCheck.TESTED).isEqualTo(tested);
  }

  @Test
  void theLibrariesWhoseSymbolsAreReadAreThere() {
    assertThat(Glibc.libraries())
        .hasSize(3)
        .allMatch(name -> DoctorPageTest.class.getResource(name) != null);
  }
}
