import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.PathMatcher;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
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
 * Completes a release's folder and fails if it is not what it has to be: {@code java
 * integration-tests/checks/ReleaseFolder.java FOLDER VERSION [KEY [KEYS]]}, in the project's folder.
 *
 * <p>Checked are the files and no others; a manifest that says what the jar is; kernels, and native
 * libraries for both architectures; that NOTICE, the bill of materials and the jar have the same
 * libraries, with the text of each licence in the jar; no path of the machine that built it; a
 * tarball whose launcher finds its jar. Added are {@code repository/}, in the layout of a Maven
 * repository, sums, and signatures where a key of gpg is given. A signature has to be by a valid key
 * of the file KEYS, since users check it by that.
 */
public final class ReleaseFolder {
  private static final long LIMIT_SECONDS = 60;
  private static final Pattern COMPONENT =
      Pattern.compile("\"purl\"\\s*:\\s*\"pkg:maven/([^/\"]+)/([^@\"]+)@[^\"]*\"");

  private static final List<String> CONTENT =
      List.of(
          "io/zerohop/device/lib/zerohop.fatbin",
          "io/zerohop/device/lib/linux-amd64/libzerohop.so",
          "io/zerohop/device/lib/linux-aarch64/libzerohop.so",
          "META-INF/LICENSE",
          "META-INF/NOTICE");

  /** JCuda's native library has the version in its name, and has none for arm64: that is ours. */
  private static final List<String> BINDINGS =
      List.of("lib/libJCudaDriver-*-linux-x86_64.so", "lib/libJCudaDriver-*-linux-aarch64.so");

  /** What in the jar is no library's. */
  private static final List<String> OWN =
      List.of(
          "io/zerohop/{device,shuffle,spark}/**",
          "com/nvidia/spark/rapids/Zerohop*",
          "jcuda/LibUtils{,$*}.class",
          "lib/*-linux-aarch64.so",
          "META-INF/{MANIFEST.MF,LICENSE,NOTICE}",
          "META-INF/{licenses,services,zerohop}/*");

  private final Path folder;
  private final String version;
  private final Path jar;
  private final Path tarball;
  private final String key;
  private final Path keys;
  private Path keyring;
  private final List<String> problems = new ArrayList<>();

  private ReleaseFolder(
      final Path folder, final String version, final String key, final Path keys) {
    this.folder = folder.normalize();
    this.version = version;
    this.key = key;
    this.keys = keys;
    this.jar = this.folder.resolve("zerohop-spark-" + version + ".jar");
    this.tarball = this.folder.resolve("zerohop-" + version + ".tar.gz");
  }

  public static void main(final String... args) throws Exception {
    final ReleaseFolder release =
        new ReleaseFolder(
            Path.of(args[0]),
            args[1],
            args.length > 2 ? args[2] : "",
            Path.of(args.length > 3 ? args[3] : "KEYS"));
    release.checkFiles();
    if (release.problems.isEmpty()) {
      release.checkManifest();
      release.checkLibraries();
      release.checkPaths();
      release.checkTarball();
    }
    release.problems.forEach(problem -> System.err.println("ERROR: " + problem));
    if (!release.problems.isEmpty()) {
      System.exit(1);
    }
    try {
      release.layOutRepository();
      release.writeSums();
    } finally {
      release.deleteKeyring();
    }
    if (!release.problems.isEmpty()) {
      release.problems.forEach(problem -> System.err.println("ERROR: " + problem));
      System.exit(1);
    }
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
                name + ".pom",
                "zerohop-" + version + ".tar.gz",
                "zerohop-" + version + "-site.tar.gz",
                "RELEASE-NOTES.md",
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
      for (final String entry : CONTENT) {
        if (file.getEntry(entry) == null) {
          problems.add(jar + " has no " + entry);
        }
      }
      for (final String binding : BINDINGS) {
        if (file.stream().noneMatch(entry -> matches(binding, entry.getName()))) {
          problems.add(jar + " has no " + binding);
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

  /** NOTICE has the libraries that the jar holds, and so has the bill of materials. */
  private void checkLibraries() throws IOException {
    final Map<String, String> places = new TreeMap<>();
    try (JarFile file = new JarFile(jar.toFile())) {
      for (final String line : Files.readAllLines(folder.resolve("NOTICE"))) {
        final String[] words = line.split("\\s+");
        if (words.length == 4 && words[0].matches("[\\w.-]+:[\\w.-]+")) {
          places.put(words[0], words[3]);
          if (file.getEntry(words[2]) == null) {
            problems.add("the jar has no " + words[2] + ", which NOTICE names for " + words[0]);
          }
        }
      }
      checkContent(file, places);
    }
    final Set<String> listed = libraries();
    for (final String library : places.keySet()) {
      if (!listed.contains(library)) {
        problems.add("the bill of materials lacks " + library + ", which NOTICE names");
      }
    }
    for (final String library : listed) {
      if (!places.containsKey(library)) {
        problems.add("NOTICE has no line for " + library + ", which the bill of materials lists");
      }
    }
  }

  /** The libraries of the bill of materials; the modules of the project are none. */
  private Set<String> libraries() throws IOException {
    final Set<String> libraries = new TreeSet<>();
    final Matcher component =
        COMPONENT.matcher(
            Files.readString(folder.resolve("zerohop-spark-" + version + "-sbom.json")));
    while (component.find()) {
      if (!component.group(1).equals("io.zerohop")) {
        libraries.add(component.group(1) + ":" + component.group(2));
      }
    }
    return libraries;
  }

  /** Each file in the jar is Zerohop's or a library's of NOTICE, and each library has files. */
  private void checkContent(final JarFile file, final Map<String, String> places) {
    final Set<String> found = new TreeSet<>();
    for (final JarEntry entry : file.stream().filter(entry -> !entry.isDirectory()).toList()) {
      final String name = entry.getName();
      if (OWN.stream().noneMatch(place -> matches(place, name))) {
        final List<String> owners =
            places.keySet().stream().filter(library -> matches(places.get(library), name)).toList();
        if (owners.isEmpty()) {
          problems.add("NOTICE does not say whose " + name + " is, which the jar holds");
        }
        found.addAll(owners);
      }
    }
    for (final String library : places.keySet()) {
      if (!found.contains(library)) {
        problems.add("the jar holds nothing of " + library + ", which NOTICE names");
      }
    }
  }

  private static boolean matches(final String place, final String name) {
    final PathMatcher matcher = FileSystems.getDefault().getPathMatcher("glob:" + place);
    return matcher.matches(Path.of(name));
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
    final Path site = folder.resolve("zerohop-" + version + "-site.tar.gz");
    for (final Path file : List.of(tarball, site)) {
      try (InputStream in = new GZIPInputStream(Files.newInputStream(file))) {
        checkPath(file.toString(), in.readAllBytes());
      }
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
      delete(unpacked);
    }
  }

  private static void delete(final Path folder) throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      for (final Path file : files.sorted((a, b) -> b.compareTo(a)).toList()) {
        Files.deleteIfExists(file);
      }
    }
  }

  /** Returns what the command printed, or null if it failed, which is a problem. */
  private String run(final List<String> command) throws IOException, InterruptedException {
    final Path out = Files.createTempFile("zerohop-release", ".txt");
    final Process process =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(out.toFile()).start();
    try {
      if (!process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)) {
        problems.add(command + " did not end in " + LIMIT_SECONDS + " s");
      } else if (process.exitValue() != 0) {
        problems.add(command + " ended with status " + process.exitValue());
      } else {
        return Files.readString(out);
      }
      return null;
    } finally {
      process.destroyForcibly();
      Files.delete(out);
    }
  }

  /** What a repository gets, beside what is downloaded from a page. */
  private void layOutRepository() throws Exception {
    final Path repository =
        Files.createDirectories(folder.resolve("repository/io/zerohop/zerohop-spark/" + version));
    for (final String ending : List.of(".pom", ".jar", "-sources.jar", "-javadoc.jar")) {
      final String name = "zerohop-spark-" + version + ending;
      final Path file = Files.copy(folder.resolve(name), repository.resolve(name));
      for (final String algorithm : List.of("MD5", "SHA-1", "SHA-512")) {
        final String sum = sum(file, algorithm);
        Files.writeString(sibling(file, algorithm), sum);
      }
      sign(file);
    }
    // A POM alone is of no use on a page.
    Files.delete(folder.resolve("zerohop-spark-" + version + ".pom"));
  }

  /** As {@code sha512sum -c *.sha512} reads them. */
  private void writeSums() throws Exception {
    final List<Path> published;
    try (Stream<Path> files = Files.list(folder)) {
      published = files.filter(Files::isRegularFile).sorted().toList();
    }
    for (final Path file : published) {
      Files.writeString(
          sibling(file, "SHA-512"), sum(file, "SHA-512") + "  " + file.getFileName() + "\n");
      sign(file);
    }
  }

  private static String sum(final Path file, final String algorithm) throws Exception {
    final byte[] sum = MessageDigest.getInstance(algorithm).digest(Files.readAllBytes(file));
    return HexFormat.of().formatHex(sum);
  }

  private static Path sibling(final Path file, final String algorithm) {
    final String ending = algorithm.replace("-", "").toLowerCase(Locale.ROOT);
    return file.resolveSibling(file.getFileName() + "." + ending);
  }

  private void sign(final Path file) throws IOException, InterruptedException {
    if (key.isEmpty() || !problems.isEmpty()) {
      return;
    }
    if (keyring == null) {
      keyring = Files.createTempDirectory("zerohop-keys");
      if (run(gpgOfUsers("--import", keys.toString())) == null) {
        problems.add(keys + " has no key: add that which signs, as docs/releases.md says");
        return;
      }
    }
    final String signature = file + ".asc";
    run(
        List.of(
            "gpg", "--batch", "--yes", "--armor", "--detach-sign", "--local-user", key,
            "--output", signature, file.toString()));
    if (problems.isEmpty()) {
      final String read = run(gpgOfUsers("--verify", signature, file.toString()));
      // Of a key that has expired or was revoked gpg says another word.
      if (read == null || read.lines().noneMatch(line -> line.startsWith("[GNUPG:] GOODSIG "))) {
        problems.add(
            signature + ": " + key + " is no valid key of " + keys
                + ": add or renew it, as docs/releases.md says");
      }
    }
  }

  /** A call of gpg with the keys of KEYS, and none of the one who signs. */
  private List<String> gpgOfUsers(final String... arguments) {
    final List<String> command =
        new ArrayList<>(
            List.of(
                "gpg", "--homedir", keyring.toString(), "--batch", "--no-options", "--no-autostart",
                "--status-fd", "1"));
    command.addAll(List.of(arguments));
    return command;
  }

  private void deleteKeyring() throws IOException {
    if (keyring != null) {
      delete(keyring);
    }
  }
}
