package io.zerohop.spark.keeper;

import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.posix.Clock;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * A keeper's part of the limit of the daemon that starts it. It is a name in the daemon's folder,
 * which the daemon offers and the keeper claims until it ends, so a later daemon counts it, too.
 *
 * @param base the daemon's folder
 * @param name has the sizes
 * @param sockets where applications have their socket folders as the daemon sees it, with {@value
 *     #APPLICATION} for the application's id; empty for what the application is set to
 * @param files directory in which the keeper may have files; empty if it may not
 */
public record KeeperShare(Path base, String name, String sockets, String files) {
  /** The folder in the daemon's. */
  public static final String FOLDER = "daemon";

  /** Stands for the id of an application. */
  public static final String APPLICATION = "{app}";

  /** Of files, where the daemon does not limit them. */
  public static final long UNLIMITED = Long.MAX_VALUE;

  private static final String PREFIX = "share-";
  private static final int PARTS = 4;
  private static final int UNIQUE_CHARS = 8;
  private static final int ATTEMPTS = 20;
  private static final Duration PAUSE = Duration.ofMillis(25);

  /**
   * Returns a name that no other share has.
   *
   * @param bytes of memory
   * @param fileBytes of files; {@link #UNLIMITED} where the daemon does not limit them
   */
  public static String newName(final long bytes, final long fileBytes) {
    final String unique = UUID.randomUUID().toString().substring(0, UNIQUE_CHARS);
    return PREFIX + bytes + "-" + fileBytes + "-" + unique;
  }

  /** Returns the bytes of memory of a share's name, or -1 of another name. */
  public static long bytes(final String name) {
    return number(name, 1);
  }

  /** Returns the bytes of files of a share's name, or -1 of another name. */
  public static long fileBytes(final String name) {
    return number(name, 2);
  }

  private static long number(final String name, final int place) {
    final String[] parts = name.split("-");
    try {
      return name.startsWith(PREFIX) && parts.length == PARTS ? Long.parseLong(parts[place]) : -1;
    } catch (final NumberFormatException e) {
      return -1;
    }
  }

  /** Bytes of files that the keeper may have. */
  long fileBytes() {
    return fileBytes(name);
  }

  /** As the keeper's arguments. */
  public List<String> arguments() {
    return List.of(base.toAbsolutePath().toString(), name, sockets, files);
  }

  /** Returns what the arguments say; absent if an executor started this process. */
  static @Nullable KeeperShare of(final String[] arguments) {
    return arguments.length == 4
        ? new KeeperShare(Path.of(arguments[0]), arguments[1], arguments[2], arguments[3])
        : null;
  }

  /** The folder of the application's sockets. */
  @Nullable Path socketDir(final @Nullable Path set, final String application) {
    return sockets.isEmpty() ? set : Path.of(sockets.replace(APPLICATION, application));
  }

  /**
   * Claims it. The daemon may look at it just then, so this tries again for a moment.
   *
   * @return for this process to keep open; absent if the share is gone
   */
  static @Nullable Held take(final KeeperShare share) throws InterruptedException {
    final SocketFolder folder = SocketFolder.open(share.base, FOLDER);
    for (int i = 0; i < ATTEMPTS && folder.claims().contains(share.name); i++) {
      final SocketFolder.Claim claim = folder.claimOffered(share.name);
      if (claim != null) {
        return new Held(folder, claim);
      }
      Clock.system().sleep(PAUSE);
    }
    folder.close();
    return null;
  }

  /** A share that this process holds until it ends. */
  record Held(SocketFolder folder, SocketFolder.Claim claim) implements AutoCloseable {
    @Override
    public void close() {
      claim.close();
      folder.close();
    }
  }
}
