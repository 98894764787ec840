package io.zerohop.spark.doctor;

import io.zerohop.device.cuda.CudaDriver;
import io.zerohop.device.posix.NativeLibrary;
import io.zerohop.spark.doctor.Examination.Check;
import io.zerohop.spark.doctor.Examination.Notes;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The C library of this process, and the version that the jar's native libraries require. What is
 * wanted is read from their symbols, so it holds for every build.
 */
record Glibc(SystemFiles files) implements Check {
  private static final Pattern SYMBOL = Pattern.compile("GLIBC_2\\.(\\d+)");
  private static final Pattern RELEASE = Pattern.compile("release version 2\\.(\\d+)");
  private static final Pattern MAPPED =
      Pattern.compile("(\\S*/(?:libc\\.so\\.6|libc-2\\.\\d+\\.so))(?: \\(deleted\\))?$");

  @Override
  public void run(final Notes notes) throws IOException {
    final int wanted = wanted();
    final Optional<Path> library = mapped();
    final int found = library.isEmpty() ? -1 : newest(Files.readAllBytes(library.get()), RELEASE);
    if (found < 0) {
      notes.add(
          Item.GLIBC.fail(
              "this process has no glibc (musl, as in Alpine?), and the jar's native libraries want"
                  + " 2."
                  + wanted,
              "run on a distribution with glibc, such as Debian, Ubuntu or RHEL"));
    } else if (found < wanted) {
      notes.add(
          Item.GLIBC.fail(
              "glibc 2." + found + ", and the jar's native libraries need 2." + wanted,
              "build the jar on a system as old as this one, or take a newer image; until then"
                  + " blocks are in files"));
    } else {
      notes.add(Item.GLIBC.ok("glibc 2." + found + " (2." + wanted + " is needed)"));
    }
  }

  private Optional<Path> mapped() {
    return files.lines("proc/self/maps").stream()
        .map(MAPPED::matcher)
        .filter(Matcher::find)
        .map(found -> found.group(1))
        .map(path -> files.root().resolve(path.substring(1)))
        .findFirst();
  }

  private static int wanted() throws IOException {
    int newest = 0;
    for (final String library : libraries()) {
      newest = Math.max(newest, wantedBy(library));
    }
    return newest;
  }

  /** The native libraries that the jar brings for this system, as absolute names in it. */
  static List<String> libraries() {
    return List.of(
        NativeLibrary.resource(),
        CudaDriver.bindingResource(),
        "/libjucx_" + System.getProperty("os.arch", "?") + ".so");
  }

  private static int wantedBy(final String resource) throws IOException {
    try (InputStream in = Glibc.class.getResourceAsStream(resource)) {
      return in == null ? 0 : newest(in.readAllBytes(), SYMBOL);
    }
  }

  /** The largest number that a pattern finds; -1 if it finds none. */
  private static int newest(final byte[] bytes, final Pattern pattern) {
    int newest = -1;
    final Matcher matcher = pattern.matcher(new String(bytes, StandardCharsets.ISO_8859_1));
    while (matcher.find()) {
      newest = Math.max(newest, Integer.parseInt(matcher.group(1)));
    }
    return newest;
  }
}
