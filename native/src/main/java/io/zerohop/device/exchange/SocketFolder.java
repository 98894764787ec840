package io.zerohop.device.exchange;

import io.zerohop.device.DeviceCode;
import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.FileStatus;
import io.zerohop.device.posix.NativeLibrary;
import io.zerohop.device.posix.PosixException;
import io.zerohop.device.posix.Sockets;
import java.io.IOException;
import java.nio.ByteBuffer;
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
import java.util.UUID;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The private folder in which the processes of one application have their sockets, {@code
 * base/application}.
 *
 * <p>In a place that all users of the host share the base has a name that only the application
 * knows ({@link SharedPlaces}).
 *
 * <p>While open it marks the folder as in use, by a shared lock, so that no other application's
 * process removes it or anything in it. That lock is all that processes hold against one another,
 * and it is waited for only briefly: whoever shares the base with the same uid could hold it, or be
 * stopped while holding it. Without it the folder serves as well; only a removal that is under way
 * right then may take it away, which {@link #listen} notices. Thread safe.
 */
public final class SocketFolder implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(SocketFolder.class);
  private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}");

  /** Long beside the removal of a folder, which is all that excludes us; short for a start. */
  private static final Duration USE_LIMIT = Duration.ofSeconds(1);

  /** How often a start looks at least, however slow the machine is. */
  private static final int MIN_ATTEMPTS = 10;

  private static final long PAUSE_NANOS = 1_000_000;

  /** How often a socket is made once more that was removed before it had its name. */
  private static final int LISTEN_ATTEMPTS = 3;

  private static final int HIDDEN_CHARS = 8;

  private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");

  /** The shared place in which the base was found; absent if the base was given. */
  private final @Nullable Path place;

  private final Path base;
  private final Path path;
  private final PrivateFolder use;
  private final String identity;
  private boolean closed;

  private SocketFolder(
      final @Nullable Path place,
      final Path base,
      final Path path,
      final PrivateFolder use,
      final String identity) {
    this.place = place;
    this.base = base;
    this.path = path;
    this.use = use;
    this.identity = identity;
  }

  /**
   * Opens the folder of an application; it and its base are made if they are not there.
   *
   * @param base private to this user, or shared by all as {@code /tmp} is; absent for {@code /tmp},
   *     or {@code /dev/shm} where that cannot be used
   * @param secret the application's, which names the base in a shared place
   * @throws ZerohopException (FALLBACK) if there is none that can be used; (RETRY) if somebody goes
   *     on removing it
   */
  public static SocketFolder open(
      final @Nullable Path base, final String application, final byte[] secret) {
    NativeLibrary.require();
    final List<Path> places = SharedPlaces.of(base);
    return base != null && places.isEmpty()
        ? open(base, application)
        : SharedPlaces.find(places, application, secret);
  }

  /**
   * Opens the folder of an application in a base of this user's alone; both are made if they are
   * not there.
   *
   * @throws ZerohopException (FALLBACK) if either is a link, of another user, or open to others;
   *     (RETRY) if somebody goes on removing them
   */
  public static SocketFolder open(final Path base, final String application) {
    return open(null, base, application);
  }

  /**
   * Opens the folder of an application in a base; both are made if they are not there.
   *
   * @param place the folder of all users in which the base lies; absent if the base was given
   */
  static SocketFolder open(final @Nullable Path place, final Path base, final String application) {
    NativeLibrary.require();
    final Path path = base.resolve(checkName(application));
    final Deadline deadline = Deadline.in(USE_LIMIT);
    PrivateFolder use = null;
    for (int attempt = 1; use == null; attempt++) {
      final boolean last = attempt >= MIN_ATTEMPTS && deadline.isOver();
      use = use(base, path, last);
      if (use == null && last) {
        throw new ZerohopException(
            Category.RETRY,
            Message.of("the socket folder was removed repeatedly for " + USE_LIMIT)
                .at(path.toString())
                .remedy("set spark.zerohop.socket.dir to a folder that nobody cleans"));
      }
      if (use == null) {
        LockSupport.parkNanos(PAUSE_NANOS);
      }
    }
    try {
      return new SocketFolder(place, base, path, use, identify(use.status()));
    } catch (final ZerohopException e) {
      use.close();
      throw e;
    }
  }

  /**
   * Uses the folder.
   *
   * @param anyway whether a folder that others keep locked will do
   * @return absent when somebody else removes the folder or its base right now
   */
  private static @Nullable PrivateFolder use(
      final Path base, final Path path, final boolean anyway) {
    PrivateFolder found = null;
    try (PrivateFolder parent = PrivateFolder.make(base)) {
      if (parent == null) {
        return null;
      }
      found = makeIn(parent, path);
      if (found == null || !found.isThere() || !parent.isThere()) {
        return null;
      }
      if (!found.use()) {
        if (!anyway) {
          return null;
        }
        DeviceCode.FOLDER_LOCKED
            .says("another process keeps the socket folder locked; continuing without the lock")
            .at(path.toString())
            .remedy("set spark.zerohop.socket.dir to a folder that this application does not share")
            .warn(LOG);
      } else if (!found.isThere()) {
        return null;
      }
      final PrivateFolder use = found;
      found = null;
      return use;
    } finally {
      if (found != null) {
        found.close();
      }
    }
  }

  private static @Nullable PrivateFolder makeIn(final PrivateFolder parent, final Path path) {
    try {
      return PrivateFolder.make(path);
    } catch (final ZerohopException e) {
      if (parent.isThere()) {
        throw e;
      }
      return null;
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
      throw new ZerohopException(
          Category.FALLBACK, Message.of("cannot identify a folder").because(e), e);
    }
  }

  /** Path of the socket of a process. */
  public Path socket(final String name) {
    return path.resolve(checkName(name));
  }

  /** Returns whether somebody listens on the socket of this name now. */
  public boolean isServed(final String name) {
    return StaleSockets.isServed(socket(name));
  }

  /**
   * Takes a name for this process alone. Sockets do not suffice for that: of two processes that
   * both find one that nobody serves, the slower one would remove what the other has just made. No
   * sweep removes a socket of a name that is claimed. It goes with the claim.
   *
   * @return absent if another process has it
   * @throws ZerohopException (FALLBACK) if the folder is gone, or not private
   */
  public @Nullable Claim claim(final String name) {
    final Path lock = path.resolve(StaleSockets.HIDDEN + checkName(name));
    for (int attempt = 0; attempt < LISTEN_ATTEMPTS; attempt++) {
      final PrivateFolder made = PrivateFolder.make(lock);
      if (made != null && made.claim()) {
        return new Claim(made, socket(name));
      }
      final boolean isTaken = made != null && made.isThere();
      if (made != null) {
        made.close();
      }
      if (isTaken) {
        break;
      }
    }
    return null;
  }

  /**
   * Takes a name that {@link #offer} has made, and that nobody has taken.
   *
   * @return absent if another process has it, or it is gone
   * @throws ZerohopException (FALLBACK) if it is not private
   */
  public @Nullable Claim claimOffered(final String name) {
    final PrivateFolder made =
        PrivateFolder.open(path.resolve(StaleSockets.HIDDEN + checkName(name)));
    if (made != null && made.claim()) {
      return new Claim(made, socket(name));
    }
    if (made != null) {
      made.close();
    }
    return null;
  }

  /**
   * Makes a name for another process to take. Whoever claims it first removes it at its end.
   *
   * @throws ZerohopException (FALLBACK) if it cannot be made
   */
  public void offer(final String name) {
    final PrivateFolder made =
        PrivateFolder.make(path.resolve(StaleSockets.HIDDEN + checkName(name)));
    if (made != null) {
      made.close();
    }
  }

  /**
   * Names that are offered or claimed now.
   *
   * @throws ZerohopException (FALLBACK) if they cannot be listed, or not all of them
   */
  public List<String> claims() {
    final List<String> names = new ArrayList<>();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(path, StaleSockets.HIDDEN + "*")) {
      for (final Path file : files) {
        final String name = file.getFileName().toString().substring(StaleSockets.HIDDEN.length());
        if (isName(name) && Files.isDirectory(file, LinkOption.NOFOLLOW_LINKS)) {
          names.add(name);
        }
      }
    } catch (final IOException | DirectoryIteratorException e) {
      throw new ZerohopException(
          Category.FALLBACK, Message.of("cannot list a folder").at(path.toString()).because(e), e);
    }
    return names;
  }

  /** A name that is this process's until it is closed or the process ends. */
  public static final class Claim implements AutoCloseable {
    private final PrivateFolder lock;
    private final Path socket;
    private boolean closed;

    private Claim(final PrivateFolder lock, final Path socket) {
      this.lock = lock;
      this.socket = socket;
    }

    /** Removes a socket that a process that was killed has left of this name, too. Idempotent. */
    @Override
    public synchronized void close() {
      if (!closed) {
        closed = true;
        if (lock.isThere()) {
          StaleSockets.removeStale(socket);
        }
        lock.removeIfEmpty();
        lock.close();
      }
    }
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

  /**
   * Makes a socket that already listens when its name appears; the caller owns the descriptor.
   *
   * @throws ZerohopException (FALLBACK) if the name is taken or the socket cannot be made; (RETRY)
   *     if somebody removes the folder or the socket meanwhile
   */
  public int listen(final String name, final int backlog) {
    final Path socket = socket(name);
    for (int attempt = 0; attempt < LISTEN_ATTEMPTS; attempt++) {
      try {
        StaleSockets.remove(socket);
        return listenAs(socket, backlog);
      } catch (final IOException | PosixException e) {
        final boolean gone = e instanceof PosixException p && p.errno() == PosixException.ENOENT;
        if (!gone) {
          throw new ZerohopException(
              Category.FALLBACK, cannotListen(socket).because(String.valueOf(e.getMessage())), e);
        }
        if (!use.isThere()) {
          break;
        }
      }
    }
    throw new ZerohopException(
        Category.RETRY,
        cannotListen(socket)
            .because("another process removes it, or its folder")
            .remedy("set spark.zerohop.socket.dir to a folder that nobody cleans"));
  }

  private static Message cannotListen(final Path socket) {
    return Message.of("cannot listen on a socket").at(socket.toString());
  }

  /** Binds a hidden name, which a sweep leaves alone, and renames it once it listens. */
  private int listenAs(final Path socket, final int backlog) throws IOException {
    final String unique = UUID.randomUUID().toString().substring(0, HIDDEN_CHARS);
    final Path hidden = path.resolve(StaleSockets.HIDDEN + unique);
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
  }

  /** Removes the socket of a server that ends. */
  public void unlink(final String name) {
    StaleSockets.delete(socket(name));
  }

  /**
   * Removes the sockets of this application on which nobody listens, unless their name is claimed,
   * and what applications under the same base, or beside it in a shared place, have left that are
   * gone. The folder of one that lives is left alone.
   */
  public void sweep() {
    StaleSockets.sweep(path, false);
    sweepOthers(base);
    if (place == null) {
      return;
    }
    for (final Path other : SharedPlaces.ownBases(place)) {
      if (!other.equals(base)) {
        sweepOthers(other);
        removeBase(other);
      }
    }
  }

  private void sweepOthers(final Path folder) {
    try (DirectoryStream<Path> applications = Files.newDirectoryStream(folder)) {
      for (final Path application : applications) {
        if (!application.equals(path)) {
          sweepOther(application);
        }
      }
    } catch (final NoSuchFileException e) {
      LOG.debug("folder {} no longer exists", folder);
    } catch (final IOException | DirectoryIteratorException e) {
      DeviceCode.FOLDERS_NOT_SWEPT
          .says("cannot list the folders of stale sockets")
          .at(folder.toString())
          .warn(LOG, e);
    }
  }

  private static void sweepOther(final Path application) {
    if (!Files.isDirectory(application, LinkOption.NOFOLLOW_LINKS)) {
      return;
    }
    try (PrivateFolder folder = PrivateFolder.open(application)) {
      if (folder != null && folder.claim()) {
        StaleSockets.sweep(application, true);
        folder.removeIfEmpty();
      }
    } catch (final ZerohopException e) {
      LOG.debug("folder {} is left alone", application, e);
    }
  }

  /** Releases the folder, and removes it and its base if nobody else uses them. Idempotent. */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    try {
      if (use.claim()) {
        StaleSockets.sweep(path, true);
        use.removeIfEmpty();
      }
    } finally {
      use.close();
    }
    removeBase(base);
  }

  /** A process that is about to create a folder in it notices, and creates the base again. */
  private static void removeBase(final Path base) {
    try (PrivateFolder parent = PrivateFolder.open(base)) {
      if (parent != null) {
        parent.removeIfEmpty();
      }
    } catch (final ZerohopException e) {
      LOG.debug("folder {} is left alone", base, e);
    }
  }
}
