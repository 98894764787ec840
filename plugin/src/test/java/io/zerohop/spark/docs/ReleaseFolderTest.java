package io.zerohop.spark.docs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.zerohop.spark.docs.CheckRunner.Outcome;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Runs integration-tests/checks/ReleaseFolder.java and CentralRules.java on a small release with
 * this repository's NOTICE and POM.
 */
class ReleaseFolderTest {
  private static final Path REPOSITORY = CheckRunner.REPOSITORY;
  private static final String VERSION = "1.2.3";
  private static final String NAME = "zerohop-spark-" + VERSION;

  /** One file of each library, and what a release has to have. */
  private static final List<String> ENTRIES =
      List.of(
          "META-INF/LICENSE",
          "META-INF/NOTICE",
          "META-INF/alone/slf4j-api.jar",
          "META-INF/licenses/agrona.txt",
          "META-INF/licenses/jcuda.txt",
          "META-INF/licenses/jucx.txt",
          "META-INF/licenses/picocli.txt",
          "META-INF/licenses/slf4j.txt",
          "com/nvidia/spark/rapids/ZerohopHashPartitioning.class",
          "io/zerohop/device/lib/linux-aarch64/libzerohop.so",
          "io/zerohop/device/lib/linux-amd64/libzerohop.so",
          "io/zerohop/device/lib/zerohop.fatbin",
          "io/zerohop/shaded/agrona/Buffer.class",
          "io/zerohop/shaded/picocli/CommandLine.class",
          "io/zerohop/spark/Main.class",
          "jcuda/LibUtils$OSType.class",
          "jcuda/Pointer.class",
          "lib/libJCudaDriver-12.6.0-linux-aarch64.so",
          "lib/libJCudaDriver-12.6.0-linux-x86_64.so",
          "libjucx_amd64.so",
          "org/openucx/jucx/UcxUtils.class");

  private static final List<String> LIBRARIES =
      List.of(
          "io.zerohop/zerohop-shuffle",
          "info.picocli/picocli",
          "org.agrona/agrona",
          "org.jcuda/jcuda",
          "org.jcuda/jcuda-natives",
          "org.openucx/jucx",
          "org.slf4j/slf4j-api");

  @TempDir private static Path classes;
  private static CheckRunner checks;
  @TempDir private Path temporary;

  private final Map<String, String> environment = new TreeMap<>();
  private Path release;
  private Path repository;
  private Path keys;

  @BeforeAll
  static void compile() {
    checks = new CheckRunner(classes, "ReleaseFolder", "CentralRules");
  }

  @BeforeEach
  void makeRelease() throws Exception {
    keys = Files.copy(REPOSITORY.resolve("KEYS"), temporary.resolve("KEYS"));
    makeRelease(temporary);
  }

  private void makeRelease(final Path folder) throws Exception {
    release = Files.createDirectories(folder.resolve("release"));
    repository = release.resolve("repository");
    writeJar(NAME + ".jar", ENTRIES);
    writeJar(NAME + "-sources.jar", List.of("io/zerohop/spark/Main.java"));
    writeJar(NAME + "-javadoc.jar", List.of("index.html"));
    writeSbom(LIBRARIES);
    writePom("A shuffle manager");
    for (final String name : List.of("LICENSE", "NOTICE")) {
      Files.copy(REPOSITORY.resolve(name), release.resolve(name));
    }
    Files.writeString(release.resolve("RELEASE-NOTES.md"), "# Zerohop");
    final Path home = Files.createDirectories(folder.resolve("zerohop-" + VERSION));
    Files.createDirectory(home.resolve("docs"));
    for (final String name : List.of("README.md", "docs/limits.md", "LICENSE", "NOTICE")) {
      Files.writeString(home.resolve(name), name);
    }
    final String tarball = release.resolve("zerohop-" + VERSION + ".tar.gz").toString();
    final String root = folder.toString();
    run(List.of("tar", "-czf", tarball, "-C", root, home.getFileName().toString()));
    final String site = release.resolve("zerohop-" + VERSION + "-site.tar.gz").toString();
    run(List.of("tar", "-czf", site, "-C", home.toString(), "docs"));
  }

  @Test
  void aReleaseIsLaidOutAsCentralTakesIt() throws Exception {
    assertComplete(releaseFolder(""));
    final Path artifact = repository.resolve("io/zerohop/zerohop-spark/" + VERSION);
    final List<String> expected = new ArrayList<>();
    for (final String ending : List.of("-javadoc.jar", "-sources.jar", ".jar", ".pom")) {
      for (final String sum : List.of("", ".md5", ".sha1", ".sha512")) {
        expected.add(NAME + ending + sum);
      }
    }
    try (Stream<Path> files = Files.list(artifact)) {
      assertThat(files.map(file -> file.getFileName().toString()))
          .containsExactlyInAnyOrderElementsOf(expected);
    }
    final Outcome central = centralRules();
    assertThat(central.status()).as(central.text()).isZero();
    assertThat(central.text()).contains("no file is signed").contains("4 files are in order");
    assertThat(run(List.of("sh", "-c", "cd '" + release + "' && sha512sum -c *.sha512")).status())
        .isZero();
  }

  @Test
  void withAKeyEachFileIsSigned() throws Exception {
    withKeyOf(
        "test@example.org",
        who -> {
          appendKey(who);
          assertComplete(releaseFolder(who));
          assertThat(release.resolve("zerohop-" + VERSION + ".tar.gz.asc")).exists();
          final Outcome central = centralRules();
          assertThat(central.status()).as(central.text()).isZero();
          assertThat(central.text()).doesNotContain("no file is signed");

          final Path jar = repository.resolve("io/zerohop/zerohop-spark/" + VERSION);
          final Path signature = jar.resolve(NAME + ".jar.asc");
          final Path other = jar.resolve(NAME + ".pom.asc");
          Files.write(signature, Files.readAllBytes(other));
          assertThat(centralRules().text()).contains("is no valid signature");
          Files.delete(signature);
          assertThat(centralRules().text()).contains("3 of 4 files have a signature");
        });
  }

  @Test
  void aKeyThatUsersDoNotHaveFromKeysIsRefused() throws Exception {
    withKeyOf(
        "first@example.org",
        first -> {
          // The file begins with words for its readers, and may have no key yet.
          assertRefusedKey(first, "KEYS has no key");
          final String other = "second@example.org";
          makeKey(other);
          appendKey(other);
          assertRefusedKey(first, first + " is no valid key of");
          appendKey(first);
          appendKey(revoked(first));
          assertRefusedKey(first, first + " is no valid key of");
        });
  }

  @Test
  void aKeyThatIsNotThereFails() throws Exception {
    withKeyOf(
        "test@example.org",
        who -> {
          appendKey(who);
          assertRefusedKey("nobody@example.org", "--local-user, nobody@example.org");
        });
  }

  @Test
  void aReleaseHasNativeLibrariesForBothArchitectures() throws Exception {
    for (final String missing :
        List.of(
            "io/zerohop/device/lib/linux-aarch64/libzerohop.so",
            "io/zerohop/device/lib/linux-amd64/libzerohop.so",
            "lib/libJCudaDriver-12.6.0-linux-aarch64.so",
            "lib/libJCudaDriver-12.6.0-linux-x86_64.so")) {
      writeJar(NAME + ".jar", ENTRIES.stream().filter(name -> !name.equals(missing)).toList());
      assertRefused("has no " + missing.replace("12.6.0", "*"));
    }
  }

  @Test
  void noticeNamesWhatTheJarHoldsAndNothingElse() throws Exception {
    writeJar(NAME + ".jar", plus(ENTRIES, "org/stranger/Library.class"));
    assertRefused("NOTICE does not say whose org/stranger/Library.class is");
    writeJar(NAME + ".jar", ENTRIES.stream().filter(name -> !name.contains("slf4j-api")).toList());
    assertRefused("the jar holds nothing of org.slf4j:slf4j-api, which NOTICE names");
    writeJar(NAME + ".jar", ENTRIES.stream().filter(name -> !name.contains("jucx.txt")).toList());
    assertRefused("the jar has no META-INF/licenses/jucx.txt");
  }

  @Test
  void theBillOfMaterialsListsWhatNoticeNamesAndNothingElse() throws Exception {
    writeSbom(LIBRARIES.stream().filter(name -> !name.endsWith("slf4j-api")).toList());
    assertRefused("the bill of materials lacks org.slf4j:slf4j-api, which NOTICE names");
    writeSbom(plus(LIBRARIES, "org.stranger/library"));
    assertRefused("NOTICE has no line for org.stranger:library");
  }

  @Test
  void centralRefusesAPomThatLacksWhatItDemands() throws Exception {
    assertComplete(releaseFolder(""));
    final Path pom =
        repository.resolve("io/zerohop/zerohop-spark/" + VERSION).resolve(NAME + ".pom");
    final String whole = Files.readString(pom);
    final Map<String, String> elements =
        Map.of(
            "(?s)<scm>.*</scm>", "has no scm/connection",
            "(?s)<developers>.*</developers>", "has no developers/developer/name",
            "<url>https://www.apache.org[^<]*</url>", "has no licenses/license/url",
            "<description>[^<]*</description>", "has no description");
    for (final Map.Entry<String, String> element : elements.entrySet()) {
      Files.writeString(pom, whole.replaceFirst(element.getKey(), ""));
      assertThat(centralRules().text()).contains(element.getValue());
    }
    Files.writeString(
        pom, whole.replace("</project>", "<dependencies></dependencies><parent/></project>"));
    assertThat(centralRules().text()).contains("has dependencies").contains("has parent");
    Files.writeString(pom, whole.replace(VERSION, "1.2.4"));
    assertThat(centralRules().text())
        .contains("by its coordinates the POM belongs to")
        .contains(".md5 is not the sum");
    Files.delete(pom.resolveSibling(NAME + "-sources.jar"));
    assertThat(centralRules().text()).contains("-sources.jar is missing");
  }

  @Test
  void aDescriptionThatIsNotFilledInIsRefused() throws Exception {
    writePom("${project.description}");
    assertComplete(releaseFolder(""));
    assertThat(centralRules().text()).contains("description is not filled in");
  }

  /** What is done while gpg has a key of one address, in a folder of its own. */
  private interface WithKey {
    void run(String who) throws Exception;
  }

  private void withKeyOf(final String who, final WithKey body) throws Exception {
    assumeThat(
            Stream.of(System.getenv("PATH").split(":"))
                .anyMatch(folder -> Files.isExecutable(Path.of(folder, "gpg"))))
        .as("gpg is installed")
        .isTrue();
    // A folder that only its owner can read, as gpg wants it.
    environment.put("GNUPGHOME", Files.createTempDirectory(temporary, "keys").toString());
    try {
      makeKey(who);
      body.run(who);
    } finally {
      run(List.of("gpgconf", "--kill", "all"));
    }
  }

  private void makeKey(final String who) throws Exception {
    gpg("--passphrase", "", "--quick-generate-key", who, "ed25519", "sign", "1d");
  }

  private void appendKey(final String whoOrKey) throws Exception {
    final String key =
        whoOrKey.contains("BEGIN PGP") ? whoOrKey : gpg("--armor", "--export", whoOrKey);
    Files.writeString(keys, "\n" + key, StandardOpenOption.APPEND);
  }

  /** The certificate by which gpg lets a key be revoked, as its file has it. */
  private String revoked(final String who) throws Exception {
    final Matcher fingerprint =
        Pattern.compile("fpr:+([0-9A-F]{40}):").matcher(gpg("--with-colons", "--list-keys", who));
    assertThat(fingerprint.find()).isTrue();
    final Path certificate =
        Path.of(environment.get("GNUPGHOME"), "openpgp-revocs.d", fingerprint.group(1) + ".rev");
    final String text = Files.readString(certificate);
    return text.substring(text.indexOf(":-----BEGIN") + 1);
  }

  private String gpg(final String... arguments) throws Exception {
    final List<String> command = new ArrayList<>(List.of("gpg", "--batch"));
    command.addAll(List.of(arguments));
    final Outcome outcome = run(command);
    assertThat(outcome.status()).as(outcome.text()).isZero();
    return outcome.text();
  }

  private void assertRefusedKey(final String who, final String why) throws Exception {
    // A release that was refused is not tried twice: the build makes it anew.
    makeRelease(Files.createTempDirectory(temporary, "again"));
    final Outcome outcome = releaseFolder(who);
    assertThat(outcome.status()).as(outcome.text()).isNotZero();
    assertThat(outcome.text()).contains(why);
    assertThat(outcome.text()).doesNotContain("is complete");
  }

  private static List<String> plus(final List<String> names, final String other) {
    return Stream.concat(names.stream(), Stream.of(other)).toList();
  }

  private void assertRefused(final String why) throws Exception {
    final Outcome outcome = releaseFolder("");
    assertThat(outcome.status()).as(outcome.text()).isNotZero();
    assertThat(outcome.text()).contains(why);
    assertThat(repository).doesNotExist();
  }

  private static void assertComplete(final Outcome outcome) {
    assertThat(outcome.status()).as(outcome.text()).isZero();
    assertThat(outcome.text()).contains("is complete");
  }

  private Outcome releaseFolder(final String key) throws Exception {
    return java("ReleaseFolder", release.toString(), VERSION, key, keys.toString());
  }

  private Outcome centralRules() throws Exception {
    return java("CentralRules", repository.toString());
  }

  private Outcome java(final String name, final String... arguments) throws Exception {
    return checks.java(environment, name, arguments);
  }

  private Outcome run(final List<String> command) throws Exception {
    return checks.run(environment, command);
  }

  private void writeJar(final String name, final List<String> entries) throws IOException {
    final Manifest manifest = new Manifest();
    final Attributes attributes = manifest.getMainAttributes();
    attributes.put(Attributes.Name.MANIFEST_VERSION, "1.0");
    attributes.put(Attributes.Name.IMPLEMENTATION_VERSION, VERSION);
    attributes.putValue("Zerohop-Commit", "a".repeat(40));
    attributes.putValue("Zerohop-Java", "17");
    attributes.putValue("Zerohop-Kernels", "sm_90 compute_90");
    try (JarOutputStream out =
        new JarOutputStream(Files.newOutputStream(release.resolve(name)), manifest)) {
      for (final String entry : entries) {
        out.putNextEntry(new JarEntry(entry));
        out.write(entry.getBytes(StandardCharsets.UTF_8));
      }
    }
  }

  private void writeSbom(final List<String> libraries) throws IOException {
    final String components =
        libraries.stream()
            .map(library -> "{ \"purl\" : \"pkg:maven/" + library + "@1.0?type=jar\" }")
            .reduce((a, b) -> a + ",\n" + b)
            .orElseThrow();
    Files.writeString(release.resolve(NAME + "-sbom.json"), "[" + components + "]");
  }

  /** As release/pom.xml fills it in. */
  private void writePom(final String description) throws IOException {
    final String template =
        Files.readString(REPOSITORY.resolve("release/src/pom/zerohop-spark.pom"));
    Files.writeString(
        release.resolve(NAME + ".pom"),
        template
            .replace("@version@", VERSION)
            .replace("@description@", description)
            .replace("@home@", "https://example.org/zerohop"));
  }
}
