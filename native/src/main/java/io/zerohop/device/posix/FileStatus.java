package io.zerohop.device.posix;

/**
 * The part of {@code struct stat} that matters here.
 *
 * @param device device number of the file system
 * @param inode inode number, unique on its device while the file exists
 * @param userId owner
 * @param mode type and permission bits
 * @param bytes size of a regular file
 */
public record FileStatus(long device, long inode, long userId, long mode, long bytes) {
  static final int WORDS = 5;

  private static final long TYPE_MASK = 0170000;
  private static final long REGULAR = 0100000;
  private static final long SOCKET = 0140000;
  private static final long FOLDER = 0040000;
  private static final long OTHERS_MASK = 077;
  private static final long STICKY_FOR_ALL = 01002;

  static FileStatus of(final long[] values) {
    return new FileStatus(values[0], values[1], values[2], values[3], values[4]);
  }

  public boolean isRegular() {
    return (mode & TYPE_MASK) == REGULAR;
  }

  public boolean isSocket() {
    return (mode & TYPE_MASK) == SOCKET;
  }

  public boolean isFolder() {
    return (mode & TYPE_MASK) == FOLDER;
  }

  /** Whether everybody may make files here, and only change their own, as in {@code /tmp}. */
  public boolean isShared() {
    return isFolder() && (mode & STICKY_FOR_ALL) == STICKY_FOR_ALL;
  }

  /** Whether group or world have any permission. */
  public boolean openToOthers() {
    return (mode & OTHERS_MASK) != 0;
  }

  /** Whether it is a folder of this process's user, and of nobody else. */
  public boolean isPrivateFolder() {
    return isFolder() && userId == Descriptor.userId() && !openToOthers();
  }

  public boolean sameFile(final FileStatus other) {
    return device == other.device && inode == other.inode;
  }
}
