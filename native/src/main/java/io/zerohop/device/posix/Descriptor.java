package io.zerohop.device.posix;

/** Plain operations on file descriptors and folders. Failures are {@link PosixException}s. */
public final class Descriptor {
  private Descriptor() {}

  /** A second descriptor for the same open file; the caller owns it. */
  public static native int duplicate(int fd);

  /** Closes; never call it twice for one descriptor, the number may be somebody else's by then. */
  public static native void close(int fd);

  /** What an open descriptor refers to. */
  public static FileStatus status(final int fd) {
    final long[] values = new long[FileStatus.WORDS];
    status(fd, values);
    return FileStatus.of(values);
  }

  /** What a path refers to; a symbolic link is not followed. */
  public static FileStatus statusOf(final String path) {
    final long[] values = new long[FileStatus.WORDS];
    statusOf(path, values);
    return FileStatus.of(values);
  }

  /** Opens a folder; {@code ENOTDIR} or {@code ELOOP} if it is a symbolic link or no folder. */
  public static native int openFolder(String path);

  /**
   * Locks an open file or folder without waiting ({@code flock}). The lock ends with the
   * descriptor, so a killed process leaves none.
   *
   * @return false when another holder excludes this lock
   */
  public static native boolean tryLock(int fd, boolean shared);

  /** Renames and never replaces: {@code EEXIST} when the new name is taken. */
  public static native void rename(String from, String to);

  /** The effective user id of this process. */
  public static native int userId();

  private static native void status(int fd, long[] out);

  private static native void statusOf(String path, long[] out);
}
