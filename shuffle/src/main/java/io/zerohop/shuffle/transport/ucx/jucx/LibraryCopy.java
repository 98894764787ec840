package io.zerohop.shuffle.transport.ucx.jucx;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The copy of its native library that jucx loads, in a folder of its own beside other temporary
 * files. jucx removes it when the JVM ends in good order, which an executor that is killed does
 * not; but nobody needs it once it is loaded, since the mapping outlives the file.
 */
final class LibraryCopy {
  private static final Logger LOG = LoggerFactory.getLogger(LibraryCopy.class);
  private static final Path MAPPINGS = Path.of("/proc/self/maps");
  private static final Pattern FOLDER = Pattern.compile("jucx\\d+");
  private static final Pattern FILE = Pattern.compile("libjucx\\w*\\.so");

  private LibraryCopy() {}

  /** Removes what this process has loaded, and nobody else's. Does not fail. */
  static void remove() {
    try {
      final Path temporary = Path.of(System.getProperty("java.io.tmpdir")).toRealPath();
      for (final Path file : loaded()) {
        final Path folder = file.getParent();
        if (temporary.equals(folder.getParent())
            && FOLDER.matcher(folder.getFileName().toString()).matches()) {
          Files.deleteIfExists(file);
          Files.deleteIfExists(folder);
        }
      }
    } catch (final IOException e) {
      LOG.debug("jucx's copy of its library stays until this process ends", e);
    }
  }

  private static List<Path> loaded() throws IOException {
    try (var lines = Files.lines(MAPPINGS)) {
      return lines
          .filter(line -> line.indexOf('/') >= 0)
          .map(line -> Path.of(line.substring(line.indexOf('/'))))
          .filter(file -> file.getNameCount() > 2)
          .filter(file -> FILE.matcher(file.getFileName().toString()).matches())
          .distinct()
          .toList();
    }
  }
}
