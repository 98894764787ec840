package io.zerohop.device.posix;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A native library that the jar carries. It is unpacked to a folder that this very call makes and
 * nobody but its user may enter: a file at a known place of the temporary folder could be
 * anybody's. The folder is gone when the call returns, since the mapping outlives the file.
 *
 * <p>No other process is waited for, and an interrupt changes nothing. Thread safe; who loads a
 * library twice has it twice.
 */
public final class JarLibrary {
  private JarLibrary() {}

  /**
   * Loads a library for the classes of this class loader.
   *
   * @param resource its absolute name in the jar
   * @throws ZerohopException (FALLBACK) when the jar does not have it or it cannot load
   */
  public static void load(final String resource) {
    try (InputStream library = JarLibrary.class.getResourceAsStream(resource)) {
      if (library == null) {
        throw new ZerohopException(
            Category.FALLBACK, Message.of("the jar lacks a native library").at(resource));
      }
      load(library, resource);
    } catch (final IOException e) {
      throw notUnpacked(resource, e);
    }
  }

  /**
   * As {@link #load(String)}, from a stream.
   *
   * @param resource what to call it in messages
   */
  static void load(final InputStream library, final String resource) {
    try {
      unpack(library, resource.substring(resource.lastIndexOf('/') + 1));
    } catch (final UnsatisfiedLinkError e) {
      final Message shortage = GlibcVersion.shortage(e.getMessage());
      if (shortage == null) {
        throw notUnpacked(resource, e);
      }
      throw new ZerohopException(Category.FALLBACK, shortage.at(resource), e);
    } catch (final IOException e) {
      throw notUnpacked(resource, e);
    }
  }

  private static ZerohopException notUnpacked(final String resource, final Throwable failure) {
    return new ZerohopException(
        Category.FALLBACK,
        Message.of("cannot load the native library")
            .at(resource + ", from " + System.getProperty("java.io.tmpdir"))
            .because(failure)
            .remedy(
                "if that folder is mounted noexec or is not writable, set -Djava.io.tmpdir to"
                    + " another"),
        failure);
  }

  private static void unpack(final InputStream library, final String name) throws IOException {
    final Path folder =
        Files.createTempDirectory(
            "zerohop-lib-",
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    final Path copy = folder.resolve(name);
    try {
      // Not a channel, which an interrupt would close.
      try (OutputStream out = new FileOutputStream(copy.toFile())) {
        library.transferTo(out);
      }
      System.load(copy.toString());
    } finally {
      delete(copy);
      delete(folder);
    }
  }

  private static void delete(final Path path) {
    try {
      Files.deleteIfExists(path);
    } catch (final IOException e) {
      path.toFile().deleteOnExit();
    }
  }

  /**
   * The dynamic linker's error for a library that needs a newer C library than the installed one.
   */
  static final class GlibcVersion {
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
     * @return absent if that is not what was missing
     */
    static @Nullable Message shortage(final @Nullable String linker) {
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
}
