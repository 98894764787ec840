package io.zerohop.device.exchange;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.FileStatus;
import io.zerohop.device.posix.PosixException;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.jspecify.annotations.Nullable;

/**
 * An open folder that nobody but its user may enter. Owns the descriptor, and with it the lock, if
 * one was taken: the kernel drops that of a killed process. Nothing here waits.
 *
 * <p>A folder may be removed between being made and being opened or locked. {@link #isThere} tells,
 * and whoever asked begins anew.
 */
final class PrivateFolder implements AutoCloseable {
  private static final String REMEDY = "set spark.zerohop.socket.dir to a folder of your own";

  private final Path path;
  private final int fd;
  private final FileStatus status;
  private boolean closed;

  private PrivateFolder(final Path path, final int fd, final FileStatus status) {
    this.path = path;
    this.fd = fd;
    this.status = status;
  }

  /** Makes the folder (0700) if need be and opens it as below. */
  static @Nullable PrivateFolder make(final Path path) {
    create(path);
    return open(path);
  }

  /**
   * Opens a folder and checks that it is private.
   *
   * @return absent if it is not there
   * @throws ZerohopException (FALLBACK) if it is a link, no folder, of another user or open to
   *     others
   */
  static @Nullable PrivateFolder open(final Path path) {
    final int fd = descriptor(path);
    if (fd < 0) {
      return null;
    }
    boolean done = false;
    try {
      final FileStatus status = Descriptor.status(fd);
      checkPrivate(path, status);
      done = true;
      return new PrivateFolder(path, fd, status);
    } finally {
      if (!done) {
        Descriptor.close(fd);
      }
    }
  }

  private static void create(final Path path) {
    try {
      Files.createDirectory(
          path, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    } catch (final FileAlreadyExistsException e) {
      // Checked when it is opened.
      return;
    } catch (final IOException e) {
      throw refused("cannot make a folder", path, String.valueOf(e), e);
    }
  }

  private static int descriptor(final Path path) {
    try {
      return Descriptor.openFolder(path.toString());
    } catch (final PosixException e) {
      if (e.errno() == PosixException.ENOENT) {
        return -1;
      }
      final boolean link = e.errno() == PosixException.ELOOP || e.errno() == PosixException.ENOTDIR;
      final String what = link ? "it is a symbolic link or no folder" : e.getMessage();
      throw refused("a folder is refused", path, what, e);
    }
  }

  private static void checkPrivate(final Path path, final FileStatus status) {
    if (status.userId() != Descriptor.userId()) {
      throw refused("a folder is refused", path, "it belongs to user " + status.userId(), null);
    }
    if (status.openToOthers()) {
      throw new ZerohopException(
          Category.FALLBACK,
          Message.of("a folder is refused")
              .at(path.toString())
              .because("other users may access it")
              .remedy("run chmod 700 " + path));
    }
  }

  private static ZerohopException refused(
      final String what, final Path path, final String why, final @Nullable Throwable cause) {
    return new ZerohopException(
        Category.FALLBACK, Message.of(what).at(path.toString()).because(why).remedy(REMEDY), cause);
  }

  FileStatus status() {
    return status;
  }

  /** Whether the path still leads to this folder. */
  boolean isThere() {
    try {
      return status.sameFile(Descriptor.statusOf(path.toString()));
    } catch (final PosixException e) {
      return false;
    }
  }

  /**
   * Marks the folder as in use. Any number of processes may do that at once.
   *
   * @return false while somebody else has it {@link #claim}ed
   */
  boolean use() {
    return Descriptor.tryLock(fd, true);
  }

  /**
   * Excludes all other users, in order to remove the folder. Gives up an own {@link #use}, also if
   * it fails.
   *
   * @return false while others use it, or when it is not there any more
   */
  boolean claim() {
    return Descriptor.tryLock(fd, false) && isThere();
  }

  /** Removes the folder if it is there and empty. */
  void removeIfEmpty() {
    if (!isThere()) {
      return;
    }
    try {
      Files.deleteIfExists(path);
    } catch (final IOException e) {
      // Not empty: somebody else's files keep it alive.
      return;
    }
  }

  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      Descriptor.close(fd);
    }
  }

  @Override
  public String toString() {
    return "folder " + path;
  }
}
