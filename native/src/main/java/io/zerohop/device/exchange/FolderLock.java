package io.zerohop.device.exchange;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.FileStatus;
import io.zerohop.device.posix.PosixException;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

/**
 * An open, locked, private folder. The kernel drops the lock of a killed process.
 *
 * <p>A folder may be removed between being made and being locked; the lock then is on a folder that
 * has no path any more, which is noticed, and everything begins anew.
 */
final class FolderLock implements AutoCloseable {
  private static final long PAUSE_NANOS = 1_000_000;
  private static final String KEY = "; set spark.zerohop.socket.dir to a folder of your own";

  private final Path path;
  private final int fd;
  private final FileStatus status;
  private boolean closed;

  private FolderLock(final Path path, final int fd, final FileStatus status) {
    this.path = path;
    this.fd = fd;
    this.status = status;
  }

  /** Makes the folder (0700) if need be, checks that it is private, and locks it. */
  static FolderLock acquire(final Path path, final boolean shared, final Duration limit) {
    final Deadline deadline = Deadline.in(limit);
    while (true) {
      create(path);
      final FolderLock lock = tryAcquire(path, shared);
      if (lock != null) {
        return lock;
      }
      if (deadline.isOver()) {
        throw new ZerohopException(
            Category.FALLBACK, "folder " + path + " was locked by others for " + limit);
      }
      LockSupport.parkNanos(PAUSE_NANOS);
    }
  }

  /** Null when the folder is locked by others or has just gone. */
  static FolderLock tryAcquire(final Path path, final boolean shared) {
    final int fd = open(path);
    if (fd < 0) {
      return null;
    }
    boolean done = false;
    try {
      final FileStatus status = Descriptor.status(fd);
      checkPrivate(path, status);
      if (Descriptor.tryLock(fd, shared) && status.sameFile(Descriptor.statusOf(path.toString()))) {
        done = true;
        return new FolderLock(path, fd, status);
      }
      return null;
    } catch (final PosixException e) {
      if (e.errno() == PosixException.ENOENT) {
        return null;
      }
      throw e;
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
      throw new ZerohopException(
          Category.FALLBACK, "cannot make folder " + path + ": " + e + KEY, e);
    }
  }

  private static int open(final Path path) {
    try {
      return Descriptor.openFolder(path.toString());
    } catch (final PosixException e) {
      if (e.errno() == PosixException.ENOENT) {
        return -1;
      }
      final boolean link = e.errno() == PosixException.ELOOP || e.errno() == PosixException.ENOTDIR;
      final String what = link ? "it is a symbolic link or no folder" : e.getMessage();
      throw new ZerohopException(
          Category.FALLBACK, "folder " + path + " refused: " + what + KEY, e);
    }
  }

  private static void checkPrivate(final Path path, final FileStatus status) {
    if (status.userId() != Descriptor.userId()) {
      throw new ZerohopException(
          Category.FALLBACK,
          "folder " + path + " refused: it belongs to user " + status.userId() + KEY);
    }
    if (status.openToOthers()) {
      throw new ZerohopException(
          Category.FALLBACK,
          "folder " + path + " refused: other users may access it; run chmod 700 " + path);
    }
  }

  FileStatus status() {
    return status;
  }

  /** Tries to exclude all others, given that this is the only way anybody locks. */
  boolean tryUpgrade() {
    return Descriptor.tryLock(fd, false);
  }

  /** Removes the folder if it is empty; the lock must exclude others. */
  void removeIfEmpty() {
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
}
