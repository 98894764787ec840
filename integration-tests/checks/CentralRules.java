import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.jar.JarFile;
import java.util.stream.Stream;
import javax.xml.parsers.DocumentBuilderFactory;
import org.w3c.dom.Element;
import org.w3c.dom.Node;

/**
 * Reads a folder in the layout of a Maven repository by the published requirements of Maven Central,
 * and fails if it would be refused: {@code java integration-tests/checks/CentralRules.java FOLDER}.
 *
 * <p>Each artifact has a POM with name, description, URL, licence, developer and SCM, and with
 * coordinates that are those of its folder; the jar with sources and Javadoc; the sums of each file;
 * and a valid signature of each file. Where no file is signed, that is a notice: only who publishes
 * has the key. The project adds rules of its own: no parent, no
 * dependencies, and SHA-512 sums.
 */
public final class CentralRules {
  private static final long LIMIT_SECONDS = 60;
  private static final Map<String, String> SUMS =
      Map.of("md5", "MD5", "sha1", "SHA-1", "sha512", "SHA-512");
  private static final List<String> ELEMENTS =
      List.of(
          "name",
          "description",
          "url",
          "licenses/license/name",
          "licenses/license/url",
          "developers/developer/name",
          "scm/connection",
          "scm/developerConnection",
          "scm/url");

  private final Path folder;
  private final List<String> problems = new ArrayList<>();
  private int signed;
  private int published;

  private CentralRules(final Path folder) {
    this.folder = folder;
  }

  public static void main(final String... args) throws Exception {
    final CentralRules rules = new CentralRules(Path.of(args[0]).normalize());
    final List<Path> poms;
    try (Stream<Path> files = Files.walk(rules.folder)) {
      poms = files.filter(file -> file.toString().endsWith(".pom")).sorted().toList();
    }
    if (poms.isEmpty()) {
      rules.problems.add(rules.folder + " has no POM");
    }
    for (final Path pom : poms) {
      rules.checkPom(pom);
      rules.checkFiles(pom);
    }
    if (rules.signed == 0) {
      System.out.println(
          "NOTICE: no file is signed, which Central demands: -Drelease.gpg.key=KEY");
    } else if (rules.signed < rules.published) {
      rules.problems.add(
          rules.signed + " of " + rules.published + " files have a signature that is valid");
    }
    rules.problems.forEach(problem -> System.err.println("ERROR: " + problem));
    if (!rules.problems.isEmpty()) {
      System.exit(1);
    }
    System.out.println("central: " + rules.published + " files are in order");
  }

  private void checkPom(final Path pom) throws Exception {
    final DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
    factory.setFeature("http://apache.org/xml/features/disallow-doctype-decl", true);
    final Element project =
        factory.newDocumentBuilder().parse(pom.toFile()).getDocumentElement();
    for (final String element : ELEMENTS) {
      final String text = text(project, element);
      if (text.isBlank()) {
        problems.add(pom + " has no " + element);
      } else if (text.contains("${") || text.matches(".*@\\w+@.*")) {
        problems.add(pom + ": " + element + " is not filled in: " + text);
      }
    }
    for (final String element : List.of("parent", "dependencies", "dependencyManagement")) {
      if (child(project, element) != null) {
        problems.add(pom + " has " + element + ", and the jar holds all that it needs");
      }
    }
    final Path expected =
        folder
            .resolve(text(project, "groupId").replace('.', '/'))
            .resolve(text(project, "artifactId"))
            .resolve(text(project, "version"))
            .resolve(text(project, "artifactId") + "-" + text(project, "version") + ".pom");
    if (!expected.equals(pom)) {
      problems.add(pom + ": by its coordinates the POM belongs to " + expected);
    }
    if (text(project, "version").endsWith("-SNAPSHOT")) {
      System.out.println("NOTICE: a snapshot, which Central takes as no release: " + pom);
    }
  }

  private void checkFiles(final Path pom) throws Exception {
    final String stem = pom.getFileName().toString().replaceFirst("\\.pom$", "");
    for (final String ending : List.of(".pom", ".jar", "-sources.jar", "-javadoc.jar")) {
      final Path file = pom.resolveSibling(stem + ending);
      published++;
      if (!Files.isRegularFile(file)) {
        problems.add(file + " is missing");
        continue;
      }
      if (ending.endsWith(".jar")) {
        checkJar(file);
      }
      for (final Map.Entry<String, String> sum : SUMS.entrySet()) {
        checkSum(file, sum.getKey(), sum.getValue());
      }
      checkSignature(file);
    }
  }

  private void checkJar(final Path file) {
    try (JarFile jar = new JarFile(file.toFile())) {
      if (jar.stream().allMatch(entry -> entry.getName().startsWith("META-INF/"))) {
        problems.add(file + " is empty");
      }
    } catch (final IOException e) {
      problems.add(file + " cannot be read: " + e.getMessage());
    }
  }

  private void checkSum(final Path file, final String ending, final String algorithm)
      throws Exception {
    final Path sum = file.resolveSibling(file.getFileName() + "." + ending);
    if (!Files.exists(sum)) {
      problems.add(sum + " is missing");
      return;
    }
    final byte[] digest = MessageDigest.getInstance(algorithm).digest(Files.readAllBytes(file));
    if (!Files.readString(sum).strip().equals(HexFormat.of().formatHex(digest))) {
      problems.add(sum + " is not the sum of " + file.getFileName());
    }
  }

  private void checkSignature(final Path file) throws IOException, InterruptedException {
    final Path signature = file.resolveSibling(file.getFileName() + ".asc");
    if (!Files.exists(signature)) {
      return;
    }
    final Process gpg =
        new ProcessBuilder("gpg", "--batch", "--verify", signature.toString(), file.toString())
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .start();
    try {
      signed++;
      if (!gpg.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS) || gpg.exitValue() != 0) {
        problems.add(signature + " is no valid signature (gpg --verify)");
      }
    } finally {
      gpg.destroyForcibly();
    }
  }

  /** The text at a path of elements; empty if there is none. */
  private static String text(final Element from, final String path) {
    Element element = from;
    for (final String name : path.split("/")) {
      element = child(element, name);
      if (element == null) {
        return "";
      }
    }
    return element.getTextContent().strip();
  }

  private static Element child(final Element parent, final String name) {
    for (Node node = parent.getFirstChild(); node != null; node = node.getNextSibling()) {
      if (node instanceof Element element && element.getTagName().equals(name)) {
        return element;
      }
    }
    return null;
  }
}
