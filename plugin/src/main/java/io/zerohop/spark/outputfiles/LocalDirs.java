package io.zerohop.spark.outputfiles;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.spark.log.SparkCode;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.shuffle.ExecutorDiskUtils;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Spark's local directories. Spark chooses one by the name of a file and gives up if that one is
 * full or broken; here the others are tried.
 */
public final class LocalDirs {
  private static final Logger LOG = LoggerFactory.getLogger(LocalDirs.class);

  private static final AtomicBoolean SAID = new AtomicBoolean();

  private LocalDirs() {}

  /** Writes a file into a directory; without one, into the directory that Spark chooses. */
  @FunctionalInterface
  public interface Writer<T> {
    T write(@Nullable String dir) throws IOException;
  }

  /**
   * Writes a file into the first directory that takes it: the one that Spark chooses, or another.
   *
   * @param what is written, for messages
   * @throws IOException if none does; it says why, for each
   * @throws ZerohopException if what is written cannot be read
   */
  public static <T> T firstThatWorks(final String what, final Writer<T> writer) throws IOException {
    final List<@Nullable String> dirs = new ArrayList<>();
    dirs.add(null);
    dirs.addAll(List.of(SparkEnv.get().blockManager().diskBlockManager().localDirsString()));
    IOException failure = null;
    for (final String dir : dirs) {
      try {
        final T written = writer.write(dir);
        if (failure != null) {
          say(what, String.valueOf(dir), failure);
        }
        return written;
      } catch (final ZerohopException e) {
        throw e; // Of what is to be written, so no other directory would do.
      } catch (final Exception e) {
        // Scala throws what it does not declare.
        if (failure == null) {
          failure =
              new IOException(
                  what
                      + " could not be written to any of Spark's local directories"
                      + " (spark.local.dir): "
                      + e,
                  e);
        } else {
          failure.addSuppressed(new IOException(dir + ": " + e, e));
        }
      }
    }
    throw Objects.requireNonNull(failure, "why");
  }

  private static void say(final String what, final String dir, final IOException failure) {
    final Message message =
        SparkCode.OTHER_LOCAL_DIR
            .says(what + " was written to another local directory (logged once)")
            .at(dir)
            .because(Objects.requireNonNullElse(failure.getCause(), failure));
    if (SAID.getAndSet(true)) {
      LOG.debug("{}", message);
    } else {
      message.warn(LOG);
    }
  }

  /**
   * Returns a file in the folder of a directory in which Spark looks for that name.
   *
   * @param dir without one, the directory that Spark chooses
   */
  public static File file(final @Nullable String dir, final String name) throws IOException {
    if (dir == null) {
      return SparkEnv.get().blockManager().diskBlockManager().getFile(name);
    }
    final int folders = SparkEnv.get().conf().getInt("spark.diskStore.subDirectories", 64);
    final File file = new File(ExecutorDiskUtils.getFilePath(new String[] {dir}, folders, name));
    Files.createDirectories(file.getParentFile().toPath());
    return file;
  }
}
