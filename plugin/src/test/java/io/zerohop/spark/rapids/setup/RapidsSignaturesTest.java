package io.zerohop.spark.rapids.setup;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.rapids.api.RapidsMember;
import io.zerohop.spark.rapids.api.RapidsMember.RapidsFeature;
import io.zerohop.spark.rapids.setup.RapidsMode.RapidsRelease;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/**
 * What we bind of RAPIDS and cudf, against what each release of the matrix has: the table of
 * signatures holds facts about the released jars ({@code checks/rapids_cells.sh}) and, where the
 * matrix says so, about public sources, in which the Scala is 2.13.
 */
class RapidsSignaturesTest {
  private static final Path TABLE = Path.of("src/test/resources/rapids-signatures.tsv");
  private static final Path LINKS =
      Path.of("src/main/resources/io/zerohop/spark/rapids/api/links.txt");

  /** For each signature what each release has, in the order of the matrix. */
  private final TreeMap<String, List<Boolean>> table = new TreeMap<>();

  private final List<String> releases = new ArrayList<>();

  RapidsSignaturesTest() throws IOException {
    for (final String line : Files.readAllLines(TABLE)) {
      final List<String> parts = Arrays.asList(line.split("\t"));
      if (parts.get(0).equals("#")) {
        releases.addAll(parts.subList(1, parts.size()));
      } else {
        table.put(parts.get(0), parts.stream().skip(1).map("+"::equals).toList());
      }
    }
  }

  private Set<RapidsFeature> lacking(final String release) {
    final Set<RapidsFeature> lacking = EnumSet.noneOf(RapidsFeature.class);
    table.forEach(
        (signature, has) -> {
          if (!has.get(releases.indexOf(release))) {
            lacking.add(RapidsFeature.valueOf(signature.split(" ")[0]));
          }
        });
    return lacking;
  }

  @Test
  void theTableHasAllThatIsBoundAndAllReleases() throws IOException {
    final Set<String> bound = new TreeSet<>(Files.readAllLines(LINKS));
    for (final RapidsMember member : RapidsMember.values()) {
      bound.add(member.feature() + " " + member.signature());
    }
    assertThat(table.keySet()).as("%s; docs/compatibility.md says how", TABLE).isEqualTo(bound);
    assertThat(releases).isEqualTo(RapidsRelease.all().stream().map(RapidsRelease::name).toList());
  }

  @Test
  void eachReleaseHasWhatShufflesNeed() {
    for (final String release : releases) {
      assertThat(lacking(release))
          .as(release)
          .doesNotContain(RapidsFeature.SHUFFLE)
          .isNotEmpty() // No release makes the environment in both ways.
          .matches(
              lacks ->
                  !lacks.contains(RapidsFeature.ENV_OF_CONF)
                      || !lacks.contains(RapidsFeature.ENV_WITH_DISK));
    }
  }

  @Test
  void theMatrixSaysWhatEachReleaseLacks() {
    for (final RapidsRelease release : RapidsRelease.all()) {
      for (final RapidsFeature feature : List.of(RapidsFeature.KUDO, RapidsFeature.SPILL_STORE)) {
        if (lacking(release.name()).contains(feature)) {
          assertThat(release.without()).as(release.name()).containsKey(feature);
        }
      }
    }
    // The latest lacks nothing, and says nothing of it.
    assertThat(RapidsRelease.of("26.08.1").without()).isEmpty();
  }
}
