package io.zerohop.device.exchange;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.FileStatus;
import io.zerohop.device.posix.NativeLibrary;
import io.zerohop.device.posix.PosixException;
import io.zerohop.device.posix.Sockets;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The private folder in which the processes of one application have their sockets, {@code
 * base/application}.
 *
 * <p>While open it holds a shared lock on the folder, so that nobody removes it. Sockets are made
 * and stale ones removed under an exclusive lock on the base, so that a sweep never meets a socket
 * that does not listen yet. Thread safe.
 */
public final class SocketFolder implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(SocketFolder.class);
  private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}");
  private static final Duration LOCK_LIMIT = Duration.ofSeconds(20);
  private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");

  private final Path base;
  private final Path path;
  private final FolderLock use;
  private final String identity;
  private boolean closed;

  private SocketFolder(final Path base, final Path path, final FolderLock use) {
    this.base = base;
    this.path = path;
    this.use = use;
    this.identity = identify(use.status());
  }

  /** {@code /tmp/zerohop-<uid>}. */
  public static Path defaultBase() {
    NativeLibrary.require();
    return Path.of("/tmp", "zerohop-" + Integer.toUnsignedString(Descriptor.userId()));
  }

  /**
   * Opens the folder of an application; it and its base are made if they are not there.
   *
   * @throws ZerohopException (FALLBACK) if either is a link, of another user, or open to others
   */
  public static SocketFolder open(final Path base, final String application) {
    NativeLibrary.require();
    final Path path = base.resolve(checkName(application));
    final FolderLock lock = FolderLock.acquire(base, false, LOCK_LIMIT);
    try {
      return new SocketFolder(base, path, FolderLock.acquire(path, true, LOCK_LIMIT));
    } finally {
      lock.close();
    }
  }

  /** The folder itself. */
  public Path path() {
    return path;
  }

  /**
   * Names this folder across processes: two that see the same folder, by whatever path, get the
   * same 16 characters; any other two do not.
   */
  public String identity() {
    return identity;
  }

  private static String identify(final FileStatus status) {
    try {
      final MessageDigest digest = MessageDigest.getInstance("SHA-256");
      if (Files.isReadable(BOOT_ID)) {
        digest.update(Files.readAllBytes(BOOT_ID)); // Tells machines with like folders apart.
      }
      digest.update(
          ByteBuffer.allocate(16).putLong(status.device()).putLong(status.inode()).array());
      return HexFormat.of().formatHex(digest.digest(), 0, 8);
    } catch (final NoSuchAlgorithmException | IOException e) {
      throw new ZerohopException(Category.FALLBACK, "cannot identify a folder: " + e, e);
    }
  }

  /**
   * Path of the socket of a process.
   *
   * @throws ZerohopException (FALLBACK) when it is longer than the system allows
   */
  public Path socket(final String name) {
    return checkLength(path.resolve(checkName(name)));
  }

  private static Path checkLength(final Path socket) {
    final int length = socket.toString().getBytes(StandardCharsets.UTF_8).length;
    if (length > Sockets.MAX_PATH_BYTES) {
      throw new ZerohopException(
          Category.FALLBACK,
          "socket path "
              + socket
              + " has "
              + length
              + " bytes, the most is "
              + Sockets.MAX_PATH_BYTES
              + "; set spark.zerohop.socket.dir to a shorter path");
    }
    return socket;
  }

  /** Names of the sockets that are there now, served or not; empty if they cannot be read. */
  public List<String> sockets() {
    final List<String> names = new ArrayList<>();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(path)) {
      for (final Path file : files) {
        final String name = file.getFileName().toString();
        if (isName(name) && Descriptor.statusOf(file.toString()).isSocket()) {
          names.add(name);
        }
      }
    } catch (final IOException | DirectoryIteratorException | PosixException e) {
      LOG.debug("cannot list the sockets in {}", path, e); // One may have gone just now.
    }
    return names;
  }

  static boolean isName(final String name) {
    return NAME.matcher(name).matches();
  }

  static String checkName(final String name) {
    if (!isName(name)) {
      throw new IllegalArgumentException(
          "name '" + name + "': 1 to 64 letters, digits, '.', '_', '-', no '.' in front");
    }
    return name;
  }

  /** Makes a socket that already listens when its name appears; the caller owns the descriptor. */
  int listen(final String name, final int backlog) {
    final Path socket = socket(name);
    final Path hidden = path.resolve(".new");
    checkLength(hidden);
    final FolderLock lock = FolderLock.acquire(base, false, LOCK_LIMIT);
    try {
      Files.deleteIfExists(hidden); // Of a process that was killed right here.
      if (Files.exists(socket) && isStale(socket)) {
        Files.delete(socket);
      }
      final int listener = Sockets.listen(hidden.toString(), backlog);
      boolean done = false;
      try {
        Descriptor.rename(hidden.toString(), socket.toString());
        done = true;
        return listener;
      } finally {
        if (!done) {
          Descriptor.close(listener);
          Files.deleteIfExists(hidden);
        }
      }
    } catch (final IOException | PosixException e) {
      throw new ZerohopException(
          Category.FALLBACK, "cannot listen on socket " + socket + ": " + e.getMessage(), e);
    } finally {
      lock.close();
    }
  }

  /** Removes the socket of a server that ends. */
  void unlink(final String name) {
    delete(socket(name));
  }

  /**
   * Removes the sockets on which nobody listens, of this application and of others under the same
   * base, and then the folders of applications that are gone.
   */
  public void sweep() {
    final FolderLock lock = FolderLock.acquire(base, false, LOCK_LIMIT);
    try (DirectoryStream<Path> applications = Files.newDirectoryStream(base)) {
      for (final Path application : applications) {
        if (application.equals(path)) {
          sweepSockets(application);
        } else {
          sweepOther(application);
        }
      }
    } catch (final IOException e) {
      LOG.warn("cannot sweep stale sockets in {}", base, e);
    } finally {
      lock.close();
    }
  }

  private static void sweepOther(final Path application) {
    if (!Files.isDirectory(application, LinkOption.NOFOLLOW_LINKS)) {
      return;
    }
    try (FolderLock unused = FolderLock.tryAcquire(application, false)) {
      sweepSockets(application);
      if (unused != null) {
        unused.removeIfEmpty();
      }
    } catch (final ZerohopException e) {
      LOG.debug("folder {} is left alone", application, e);
    }
  }

  private static void sweepSockets(final Path application) {
    try (DirectoryStream<Path> files = Files.newDirectoryStream(application)) {
      for (final Path file : files) {
        if (isStale(file)) {
          LOG.info("removing {}: nobody listens on it", file);
          delete(file);
        }
      }
    } catch (final NoSuchFileException e) {
      LOG.debug("folder {} has gone by itself", application);
    } catch (final IOException e) {
      LOG.warn("cannot sweep stale sockets in {}", application, e);
    }
  }

  /** Whether a file is a socket on which nobody listens. In doubt it is not. */
  private static boolean isStale(final Path file) {
    try {
      if (!Descriptor.statusOf(file.toString()).isSocket()) {
        return false;
      }
      Descriptor.close(Sockets.connect(file.toString()));
      return false;
    } catch (final PosixException e) {
      return e.errno() == PosixException.ECONNREFUSED;
    }
  }

  private static void delete(final Path file) {
    try {
      Files.deleteIfExists(file);
    } catch (final IOException e) {
      LOG.warn("cannot remove {}", file, e);
    }
  }

  /** Lets go of the folder, and removes it and its base if nobody else uses them. Idempotent. */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    try (FolderLock lock = FolderLock.acquire(base, false, LOCK_LIMIT)) {
      // Under the lock on the base nobody can be about to use the folder.
      if (use.tryUpgrade()) {
        use.removeIfEmpty();
      }
      use.close();
      lock.removeIfEmpty();
    } finally {
      use.close();
    }
  }
}
