package io.zerohop.device.posix;

import io.zerohop.device.Message;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The dynamic linker's error for a library that needs a newer C library than the installed one. */
final class GlibcVersion {
  private static final Pattern MISSING =
      Pattern.compile("(/[^:]*): version `GLIBC_([0-9.]+)' not found");

  /** What glibc says of itself, in the file. */
  private static final Pattern RELEASE =
      Pattern.compile("GNU C Library [^\\n]*release version ([0-9.]*[0-9])");

  private GlibcVersion() {}

  /**
   * Returns which glibc is wanted and which one is here.
   *
   * @param linker what the dynamic linker said
   * @return null if that is not what was missing
   */
  static Message shortage(final String linker) {
    final Matcher missing = MISSING.matcher(linker == null ? "" : linker);
    if (!missing.find()) {
      return null;
    }
    return Message.of(
            "the native library requires glibc "
                + missing.group(2)
                + " or newer, and this system has "
                + found(Path.of(missing.group(1))))
        .remedy("use a newer system or container image");
  }

  private static String found(final Path library) {
    try {
      final Matcher release =
          RELEASE.matcher(Files.readString(library, StandardCharsets.ISO_8859_1));
      if (release.find()) {
        return "glibc " + release.group(1) + " (" + library + ")";
      }
    } catch (final IOException e) {
      // Whoever cannot read it is still told which file it is.
    }
    return "an older one (" + library + ")";
  }
}
