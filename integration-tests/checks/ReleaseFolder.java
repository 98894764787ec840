import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import java.util.zip.GZIPInputStream;

/**
 * Adds the SHA-512 sums to a release's folder and fails if the folder is not what it has to be:
 * {@code java integration-tests/checks/ReleaseFolder.java FOLDER VERSION}, in the project's folder.
 *
 * <p>The files and no others; a manifest that says what the jar is; kernels; for each library in the
 * jar a line of NOTICE and the text of its licence in the jar; no path of the machine that built it;
 * a tarball whose launcher finds its jar.
 */
public final class ReleaseFolder {
  private static final long LIMIT_SECONDS = 60;
  private static final Pattern COMPONENT =
      Pattern.compile("\"purl\"\\s*:\\s*\"pkg:maven/([^/\"]+)/([^@\"]+)@[^\"]*\"");

  private final Path folder;
  private final String version;
  private final Path jar;
  private final Path tarball;
  private final List<String> problems = new ArrayList<>();

  private ReleaseFolder(final Path folder, final String version) {
    this.folder = folder.normalize();
    this.version = version;
    this.jar = this.folder.resolve("zerohop-spark-" + version + ".jar");
    this.tarball = this.folder.resolve("zerohop-" + version + ".tar.gz");
  }

  public static void main(final String... args) throws Exception {
    final ReleaseFolder release = new ReleaseFolder(Path.of(args[0]), args[1]);
    release.checkFiles();
    if (release.problems.isEmpty()) {
      release.checkManifest();
      release.checkLicences();
      release.checkPaths();
      release.checkTarball();
    }
    release.problems.forEach(problem -> System.err.println("ERROR: " + problem));
    if (!release.problems.isEmpty()) {
      System.exit(1);
    }
    release.writeSums();
    System.out.println("release: " + release.folder + " is complete");
  }

  private void checkFiles() throws IOException {
    final String name = "zerohop-spark-" + version;
    final Set<String> expected =
        new TreeSet<>(
            List.of(
                name + ".jar",
                name + "-sources.jar",
                name + "-javadoc.jar",
                name + "-sbom.json",
                "zerohop-" + version + ".tar.gz",
                "LICENSE",
                "NOTICE"));
    final Set<String> found = new TreeSet<>();
    try (Stream<Path> files = Files.list(folder)) {
      files.map(file -> file.getFileName().toString()).forEach(found::add);
    }
    if (!found.equals(expected)) {
      problems.add(folder + " has " + found + ", not " + expected);
    }
  }

  private void checkManifest() throws IOException {
    try (JarFile file = new JarFile(jar.toFile())) {
      final Attributes manifest = file.getManifest().getMainAttributes();
      expect(manifest, "Implementation-Version", Pattern.quote(version));
      expect(manifest, "Zerohop-Commit", "[0-9a-f]{40}(-dirty)?");
      expect(manifest, "Zerohop-Java", "\\d+");
      expect(manifest, "Zerohop-Kernels", "(sm_\\d+ )+compute_\\d+");
      for (final String entry :
          List.of("io/zerohop/device/lib/zerohop.fatbin", "META-INF/LICENSE", "META-INF/NOTICE")) {
        if (file.getEntry(entry) == null) {
          problems.add(jar + " has no " + entry);
        }
      }
    }
  }

  private void expect(final Attributes manifest, final String name, final String pattern) {
    final String value = manifest.getValue(name);
    if (value == null || !value.matches(pattern)) {
      problems.add(jar + ": the manifest's " + name + " is " + value + ", not " + pattern);
    }
  }

  /** Each library of the bill of materials, and each jar in the jar. */
  private void checkLicences() throws IOException {
    final String sbom =
        Files.readString(folder.resolve("zerohop-spark-" + version + "-sbom.json"));
    final Set<String> libraries = new TreeSet<>();
    final Matcher component = COMPONENT.matcher(sbom);
    while (component.find()) {
      if (!component.group(1).equals("io.zerohop")) {
        libraries.add(component.group(1) + ":" + component.group(2));
      }
    }
    if (libraries.isEmpty()) {
      problems.add("the bill of materials has no library: " + folder);
    }
    final List<String> notice = Files.readAllLines(folder.resolve("NOTICE"));
    try (JarFile file = new JarFile(jar.toFile())) {
      file.stream()
          .map(JarEntry::getName)
          .filter(name -> name.endsWith(".jar"))
          .map(name -> ":" + name.replaceFirst("^.*/", "").replaceFirst("\\.jar$", ""))
          .forEach(libraries::add);
      for (final String library : libraries) {
        checkLicence(library, notice, file);
      }
    }
  }

  private void checkLicence(
      final String library, final List<String> notice, final JarFile file) {
    final Optional<String[]> line =
        notice.stream()
            .map(text -> text.split("\\s+"))
            .filter(words -> words.length == 3)
            .filter(words -> words[0].equals(library) || words[0].endsWith(library))
            .findFirst();
    if (line.isEmpty()) {
      problems.add("NOTICE has no line for " + library + ", which the jar holds");
    } else if (file.getEntry(line.get()[2]) == null) {
      problems.add("the jar has no " + line.get()[2] + ", which NOTICE names for " + library);
    }
  }

  /** A path of the building machine would differ elsewhere, and is nobody's business. */
  private void checkPaths() throws IOException {
    try (Stream<Path> jars = Files.list(folder)) {
      for (final Path file : jars.filter(f -> f.toString().endsWith(".jar")).toList()) {
        try (JarFile entries = new JarFile(file.toFile())) {
          for (final JarEntry entry : entries.stream().toList()) {
            try (InputStream in = entries.getInputStream(entry)) {
              checkPath(file + ", " + entry.getName(), in.readAllBytes());
            }
          }
        }
      }
    }
    try (InputStream in = new GZIPInputStream(Files.newInputStream(tarball))) {
      checkPath(tarball.toString(), in.readAllBytes());
    }
  }

  private void checkPath(final String where, final byte[] content) {
    // Latin-1 keeps each byte, and the search for a string is quick.
    final String text = new String(content, StandardCharsets.ISO_8859_1);
    for (final String module : List.of("native", "shuffle", "plugin")) {
      if (text.contains(Path.of("").toAbsolutePath().resolve(module).toString())) {
        problems.add(where + " has a path of the machine that built it");
      }
    }
  }

  /** Unpacked as a user does; the launcher has to be executable and to find the jar. */
  private void checkTarball() throws IOException, InterruptedException {
    final Path unpacked = Files.createTempDirectory("zerohop-release");
    try {
      run(List.of("tar", "-xzf", tarball.toString(), "-C", unpacked.toString()));
      final Path home = unpacked.resolve("zerohop-" + version);
      for (final String name : List.of("README.md", "docs/limits.md", "LICENSE", "NOTICE")) {
        if (!Files.isRegularFile(home.resolve(name))) {
          problems.add(tarball + " has no " + name);
        }
      }
      try (JarFile file = new JarFile(jar.toFile())) {
        if (file.getManifest().getMainAttributes().getValue("Main-Class") != null) {
          run(List.of(home.resolve("bin/doctor").toString(), "--help"));
        }
      }
    } finally {
      try (Stream<Path> files = Files.walk(unpacked)) {
        for (final Path file : files.sorted((a, b) -> b.compareTo(a)).toList()) {
          Files.delete(file);
        }
      }
    }
  }

  private void run(final List<String> command) throws IOException, InterruptedException {
    final Process process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .start();
    try {
      if (!process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)) {
        problems.add(command + " did not end in " + LIMIT_SECONDS + " s");
      } else if (process.exitValue() != 0) {
        problems.add(command + " ended with status " + process.exitValue());
      }
    } finally {
      process.destroyForcibly();
    }
  }

  /** As {@code sha512sum -c *.sha512} reads them. */
  private void writeSums() throws Exception {
    final List<Path> published;
    try (Stream<Path> files = Files.list(folder)) {
      published = files.sorted().toList();
    }
    for (final Path file : published) {
      final byte[] sum = MessageDigest.getInstance("SHA-512").digest(Files.readAllBytes(file));
      final String name = file.getFileName().toString();
      Files.writeString(
          folder.resolve(name + ".sha512"), HexFormat.of().formatHex(sum) + "  " + name + "\n");
    }
  }
}
