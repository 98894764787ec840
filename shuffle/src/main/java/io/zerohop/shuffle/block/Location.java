package io.zerohop.shuffle.block;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The address of one {@code ShuffleNode}'s memory: boot id of the machine, socket folder, socket,
 * and incarnation of the executor.
 *
 * <p>The folder's path is not in it, since every process of an application derives it from the same
 * configuration; its identity is, so that a reader can tell "the owner is dead" (same folder, no
 * socket) from "the owner is elsewhere" (another folder, such as another container's).
 *
 * @param bootId 8 hexadecimal digits that name the node: its running kernel, or what the user calls
 *     it
 * @param folderId identity of the socket folder as its owner saw it, 16 hexadecimal digits
 * @param incarnation random; a restarted executor never has its predecessor's
 * @param port TCP port at which executors on other nodes can ask it; 0 if none
 * @param clique of the NVLink fabric that reaches its GPU's memory from other nodes: the cluster,
 *     32 hexadecimal digits, a slash and a number; empty if there is none
 * @param sends whether it sends its blocks to executors that ask it over Spark's connections
 * @param socket file name of the socket in the folder, also the owner's name in the handshake
 * @param keeperPort TCP port at which the keeper of its node answers executors of other nodes once
 *     it has ended; 0 if none does
 */
public record Location(
    String bootId,
    String folderId,
    long incarnation,
    int port,
    boolean sends,
    String clique,
    String socket,
    int keeperPort) {

  /** Longest encoded form, in bytes; all of it ASCII. */
  public static final int MAX_ENCODED_BYTES = 146;

  /** Name of the socket that says that a keeper runs. */
  public static final String KEEPER = "keeper";

  /** The name by which a process connects to a keeper that copies GPU memory for it. */
  public static final String COPIER = "copier";

  private static final int LARGEST_PORT = 65_535;
  private static final String BOOT_ID_FILE = "/proc/sys/kernel/random/boot_id";
  private static final Pattern FORMAT =
      Pattern.compile(
          "zh4:([0-9a-f]{8}):([0-9a-f]{16}):([0-9a-f]{16}):(0|[1-9][0-9]{0,4})(s?)"
              + ":((?:[0-9a-f]{32}/[0-9]{1,10})?):([A-Za-z0-9._-]{1,42})(?::([1-9][0-9]{0,4}))?");

  private static final Pattern KEEPER_NAME =
      Pattern.compile(KEEPER + "(?:\\.([1-9][0-9]{0,4})(\\.gpu)?)?");

  private static final Pattern SOCKET = Pattern.compile("([A-Za-z0-9_-]{1,31})-([0-9a-f]{16})");

  /** Checks every part, so that what was encoded can be parsed again. */
  public Location {
    if (port > LARGEST_PORT
        || keeperPort > LARGEST_PORT
        || !FORMAT
            .matcher(format(bootId, folderId, incarnation, port, sends, clique, socket, keeperPort))
            .matches()) {
      throw new IllegalArgumentException(
          "not a location: boot id '"
              + bootId
              + "', port "
              + port
              + ", clique '"
              + clique
              + "', socket '"
              + socket
              + "', keeper's port "
              + keeperPort);
    }
  }

  /** Creates a location of an executor whose keeper, if any, only its own node reaches. */
  public Location(
      final String bootId,
      final String folderId,
      final long incarnation,
      final int port,
      final boolean sends,
      final String clique,
      final String socket) {
    this(bootId, folderId, incarnation, port, sends, clique, socket, 0);
  }

  /** A location of an executor that does not send, without a clique. */
  public Location(
      final String bootId,
      final String folderId,
      final long incarnation,
      final int port,
      final String socket) {
    this(bootId, folderId, incarnation, port, false, "", socket);
  }

  /** The form that travels in a map status: ASCII, at most {@link #MAX_ENCODED_BYTES} bytes. */
  public String encode() {
    return format(bootId, folderId, incarnation, port, sends, clique, socket, keeperPort);
  }

  /** Returns the same location with a keeper that answers other nodes at a port; 0 for none. */
  public Location withKeeper(final int answersAt) {
    return new Location(bootId, folderId, incarnation, port, sends, clique, socket, answersAt);
  }

  /**
   * The name by which a keeper connects to executors, which says where it answers other nodes.
   *
   * @param answersAt a port; 0 if it does not answer them
   * @param copiesGpu whether it answers them also what lies in GPU memory
   */
  public static String keeperName(final int answersAt, final boolean copiesGpu) {
    return answersAt == 0 ? KEEPER : KEEPER + '.' + answersAt + (copiesGpu ? ".gpu" : "");
  }

  /** Whether a keeper answers other nodes also what lies in GPU memory, by the name of the peer. */
  public static boolean copiesGpu(final String peer) {
    final Matcher matcher = KEEPER_NAME.matcher(peer);
    return matcher.matches() && matcher.group(2) != null;
  }

  /** The port in the name of a peer; 0 if it has none, negative if it is no keeper's. */
  public static int keeperPortOf(final String peer) {
    final Matcher matcher = KEEPER_NAME.matcher(peer);
    if (!matcher.matches()) {
      return -1;
    }
    final int answersAt = matcher.group(1) == null ? 0 : Integer.parseInt(matcher.group(1));
    return answersAt > LARGEST_PORT ? -1 : answersAt;
  }

  /** Name of an executor's socket: what {@link #executorOf} says of it, and its life. */
  public static String socketName(final String executor, final long incarnation) {
    return String.format(Locale.ROOT, "%s-%016x", executor, incarnation);
  }

  /** Returns whether a socket is an executor's, by its name. */
  public static boolean isExecutor(final String socket) {
    return SOCKET.matcher(socket).matches();
  }

  /** Name of the socket by which a keeper serves what an executor has left. */
  public static String leftSocket(final String socket) {
    return socket + ".left";
  }

  /** The owner of a socket, as its name says. */
  public static String executorOf(final String socket) {
    final Matcher matcher = SOCKET.matcher(socket);
    return matcher.matches() ? matcher.group(1) : socket;
  }

  /**
   * Returns the location of the owner of another socket in the same folder; absent if the name is
   * not one.
   */
  public @Nullable Location neighbour(final String other) {
    final Matcher matcher = SOCKET.matcher(other);
    return matcher.matches()
        ? new Location(bootId, folderId, Long.parseUnsignedLong(matcher.group(2), 16), 0, other)
        : null;
  }

  /** Reads an encoded location; absent if the text is not one of this version. */
  public static @Nullable Location parse(final @Nullable String text) {
    if (text == null || text.length() > MAX_ENCODED_BYTES) {
      return null;
    }
    final Matcher matcher = FORMAT.matcher(text);
    if (!matcher.matches()) {
      return null;
    }
    final int port = Integer.parseInt(matcher.group(4));
    final int keeperPort = matcher.group(8) == null ? 0 : Integer.parseInt(matcher.group(8));
    return port > LARGEST_PORT || keeperPort > LARGEST_PORT
        ? null
        : new Location(
            matcher.group(1),
            matcher.group(2),
            Long.parseUnsignedLong(matcher.group(3), 16),
            port,
            !matcher.group(5).isEmpty(),
            matcher.group(6),
            matcher.group(7),
            keeperPort);
  }

  /**
   * Names the node: 8 hexadecimal digits of a hash of its boot id.
   *
   * @param nodeId a name that the user gave it, such as one of several nodes that are played by one
   *     machine; empty for none
   */
  public static String currentBootId(final String nodeId) {
    try {
      final byte[] text =
          (Files.readString(java.nio.file.Path.of(BOOT_ID_FILE)).trim() + nodeId)
              .getBytes(StandardCharsets.UTF_8);
      final byte[] hash = MessageDigest.getInstance("SHA-256").digest(text);
      return java.util.HexFormat.of().formatHex(hash, 0, 4);
    } catch (final IOException | NoSuchAlgorithmException e) {
      throw new IllegalStateException("cannot read " + BOOT_ID_FILE + "; Zerohop needs Linux", e);
    }
  }

  private static String format(
      final String bootId,
      final String folderId,
      final long incarnation,
      final int port,
      final boolean sends,
      final String clique,
      final String socket,
      final int keeperPort) {
    return String.format(
        Locale.ROOT,
        "zh4:%s:%s:%016x:%d%s:%s:%s%s",
        bootId,
        folderId,
        incarnation,
        port,
        sends ? "s" : "",
        clique,
        socket,
        keeperPort == 0 ? "" : ":" + keeperPort);
  }

  @Override
  public String toString() {
    return encode();
  }
}
