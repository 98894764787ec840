package io.zerohop.shuffle.transport.samenode;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.Undo;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.shuffle.log.ShuffleCode;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The local directories in which a keeper has files of what executors have left, and how much may
 * be there. Files have no names: each is made in a folder of this user alone, whose name nobody
 * guesses, and file and folder are unlinked as soon as the file is open. So the kernel removes them
 * when they are closed, also of a keeper that is killed. Thread safe.
 */
public final class LeftFolder {
  private static final Logger LOG = LoggerFactory.getLogger(LeftFolder.class);
  private static final String PREFIX = "zerohop-kept-";
  private static final String FILE = "blocks";
  private static final int NAME_BYTES = 16;

  /** After a failure nothing is written for so long. */
  private static final Duration PAUSE = Duration.ofSeconds(10);

  /** The part of a file system that is left to others. */
  private static final int FREE_PART = 10;

  private static final FileAttribute<?> FOLDER_OF_OWNER =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
  private static final FileAttribute<?> FILE_OF_OWNER =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));

  private final List<Path> dirs;

  /** Beyond the limit that is found, where none is set. */
  private final long most;

  private final Clock clock;
  private final SecureRandom random = new SecureRandom();

  /** Files that are dropped, and not removed yet. */
  private final Queue<LeftFile> dropped = new ConcurrentLinkedQueue<>();

  /** Negative as long as it is not known. */
  @GuardedBy("this")
  private long limit;

  @GuardedBy("this")
  private long bytes;

  /** Of the directory that is used. */
  @GuardedBy("this")
  private int turn;

  @GuardedBy("this")
  private boolean hasFailed;

  @GuardedBy("this")
  private long pausedUntil;

  private LeftFolder(final List<Path> dirs, final long limit, final long most, final Clock clock) {
    this.dirs = dirs;
    this.limit = Math.min(limit, most);
    this.most = most;
    this.clock = clock;
    this.pausedUntil = clock.nanos();
  }

  /**
   * Begins to use directories, and removes there what a keeper has left that was killed between
   * making a file and unlinking it. The first one that can be looked at is used first.
   *
   * @param dirs at least one; those that are not there may come later
   * @param limit maximum bytes of all files; negative for half of what is free in the directory
   *     that is used first
   * @param most the limit is not more than this
   */
  public static LeftFolder open(
      final List<Path> dirs, final long limit, final long most, final Clock clock) {
    dirs.stream().filter(Files::isDirectory).forEach(LeftFolder::sweep);
    final LeftFolder folder = new LeftFolder(List.copyOf(dirs), limit, most, clock);
    folder.begin();
    return folder;
  }

  private void begin() {
    for (final Path dir : dirs) {
      try {
        look(dir);
        return;
      } catch (final IOException e) {
        LOG.info("{} cannot have files for now", dir, e);
        next();
      }
    }
  }

  /** Finds the limit, if none is known. Waits for the disk. */
  private void look(final Path dir) throws IOException {
    if (!Files.isDirectory(dir)) {
      throw new NotDirectoryException(dir.toString());
    }
    final long free = Files.getFileStore(dir).getUsableSpace();
    synchronized (this) {
      limit = limit < 0 ? Math.min(free / 2, most) : limit;
    }
  }

  private synchronized void next() {
    turn = (turn + 1) % dirs.size();
  }

  private static void sweep(final Path dir) {
    try (DirectoryStream<Path> folders = Files.newDirectoryStream(dir, PREFIX + "*")) {
      for (final Path folder : folders) {
        if (Descriptor.statusOf(folder.toString()).isPrivateFolder()) {
          Files.deleteIfExists(folder.resolve(FILE)); // Whoever has it open goes on.
          Files.deleteIfExists(folder);
          LOG.info("removed {}, which an earlier keeper has left", folder);
        }
      }
    } catch (final IOException | RuntimeException e) {
      LOG.info("what earlier keepers have left in {} is not removed", dir, e);
    }
  }

  /** Maximum bytes of all files; 0 as long as no directory can be used, and none is set. */
  public synchronized long limit() {
    return Math.max(0, limit);
  }

  /** Bytes of all files. */
  public synchronized long bytes() {
    return bytes;
  }

  /** Whether something may be written now: not right after that has failed. */
  public synchronized boolean isUsable() {
    return clock.isOver(pausedUntil);
  }

  /**
   * Makes a file.
   *
   * @return for the caller to close
   */
  FileChannel create() throws IOException {
    final Path dir = dir();
    look(dir);
    try {
      return createIn(dir);
    } catch (final NoSuchFileException e) {
      return createIn(dir); // A keeper that starts took the folder for what another has left.
    }
  }

  private FileChannel createIn(final Path dir) throws IOException {
    final byte[] name = new byte[NAME_BYTES];
    random.nextBytes(name);
    final Path folder = dir.resolve(PREFIX + HexFormat.of().formatHex(name));
    final Path file = folder.resolve(FILE);
    Files.createDirectory(folder, FOLDER_OF_OWNER);
    try (Undo undo = new Undo(() -> Files.deleteIfExists(folder))) {
      undo.add(() -> Files.deleteIfExists(file));
      final FileChannel made =
          FileChannel.open(
              file,
              Set.of(
                  StandardOpenOption.CREATE_NEW, StandardOpenOption.READ, StandardOpenOption.WRITE),
              FILE_OF_OWNER);
      undo.add(made);
      Files.deleteIfExists(file);
      Files.deleteIfExists(folder);
      return undo.keep(made);
    }
  }

  private synchronized Path dir() {
    return dirs.get(turn);
  }

  /**
   * Takes so many bytes of the limit, for the file that was made last.
   *
   * @throws IOException if less is left, or its file system would be nearly full
   */
  void reserve(final long more) throws IOException {
    final FileStore store = Files.getFileStore(dir()); // It may wait, so without the lock.
    if (store.getUsableSpace() - more < store.getTotalSpace() / FREE_PART) {
      throw new IOException(
          more + " bytes more would leave less than a tenth of " + store + " to others");
    }
    take(more);
  }

  private synchronized void take(final long more) throws IOException {
    if (more > limit - bytes) {
      throw new IOException(
          bytes + " of " + limit + " bytes are in files, and " + more + " more are too much");
    }
    bytes += more;
  }

  /** Takes a file over, to be removed. Does not wait. */
  void dropped(final LeftFile file) {
    dropped.add(file);
  }

  /** Whether there are files to be removed. */
  public boolean hasDropped() {
    return !dropped.isEmpty();
  }

  /**
   * Removes what was dropped. Waits for the disk, which takes long for large files: to be called
   * without a lock.
   */
  public void free() {
    for (LeftFile file = dropped.poll(); file != null; file = dropped.poll()) {
      file.free();
    }
  }

  /** Gives back what was taken. */
  synchronized void release(final long less) {
    bytes -= less;
  }

  /** Something could not be written: the next attempt comes later, and in the next directory. */
  synchronized void failed(final String what, final Throwable cause) {
    pausedUntil = clock.in(PAUSE);
    next();
    if (!hasFailed) {
      hasFailed = true;
      ShuffleCode.KEEPER_NOT_SPILLED
          .says("the keeper cannot write to files, so map outputs stay in memory")
          .at(what)
          .because(cause)
          .remedy("see spark.zerohop.keeper.files.size and the space of local directories")
          .warn(LOG, cause);
    } else {
      LOG.debug("{} is not written to a file", what, cause);
    }
  }

  @Override
  public String toString() {
    return dirs.toString();
  }
}
