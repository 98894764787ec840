package io.zerohop.spark.keeper;

import io.zerohop.device.Message;
import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.NativeLibrary;
import io.zerohop.device.posix.PosixException;
import io.zerohop.device.posix.Sockets;
import io.zerohop.spark.compat.JarVersion;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * One request to the daemon that starts the keepers of a node, and its answer; of either end. Both
 * ends have to be of one user, by what the kernel says of the socket. Every wait ends with the
 * deadline. Owns the descriptor. Used by one thread.
 *
 * <pre>
 *  0        4         5      6                10
 *  | magic  | version | kind | payload length | payload ...
 *
 *  STATUS   nothing
 *  START    bytes (8) | files (8) | application (32) | length (4) | class path | length (4) | orders
 *  answers  release | bytes (8) | left (8) | keepers (4) | maximum (4) | text
 * </pre>
 *
 * All numbers are big endian. The first five bytes are the same in every version.
 */
public final class DaemonLink implements AutoCloseable {
  /** The daemon's socket in its folder. */
  public static final String SOCKET = "socket";

  /** Bytes of what names an application: a hash of its secret. */
  static final int APPLICATION_BYTES = 32;

  private static final int MAGIC = 0x5A48_4B44;
  private static final byte VERSION = 1;
  private static final int HEADER_BYTES = 10;

  /** The heap of the daemon has room for several at once. */
  private static final int MAX_REQUEST_BYTES = 512 << 10;

  private static final int MAX_CLASS_PATH_BYTES = 128 << 10;
  private static final int MAX_ANSWER_BYTES = 16 << 10;
  private static final int MAX_TEXT = 2_000;

  /** The messages. The codes are their places. */
  public enum Kind {
    /** A question. */
    STATUS,
    /** A request for a keeper. */
    START,
    /** The answer to a question. */
    STATE,
    /** A keeper was started. */
    STARTED,
    /** The application has a keeper of this daemon's already. */
    RUNNING,
    /** A limit of the daemon's is reached, so that there is to be no keeper now. */
    FULL,
    /** The daemon does not start this one, so the executor may. */
    REFUSED;

    private static final Kind[] VALUES = values();

    private boolean isAnswer() {
      return ordinal() >= STATE.ordinal();
    }
  }

  /**
   * A request for a keeper.
   *
   * @param bytes of memory that are wanted, or -1 for what the daemon gives
   * @param fileBytes the same of files
   * @param application a hash of the application's secret
   * @param classPath of the keeper
   * @param orders what the keeper reads, with secrets
   */
  public record Start(
      long bytes, long fileBytes, byte[] application, String classPath, byte[] orders) {}

  /**
   * An answer of the daemon.
   *
   * @param release of its jar
   * @param bytes limit of all keepers together
   * @param left bytes that are not given to any
   * @param keepers that run
   * @param maxKeepers most of them
   * @param text for the log
   */
  public record Answer(
      Kind kind, String release, long bytes, long left, int keepers, int maxKeepers, String text) {}

  private final int fd;
  private final Deadline deadline;
  private boolean closed;

  /**
   * Takes over a connection.
   *
   * @throws ZerohopException (FALLBACK) if the other end is of another user; it is closed then
   */
  public DaemonLink(final int fd, final Deadline deadline) {
    this.fd = fd;
    this.deadline = deadline;
    try (Undo undo = new Undo(this)) {
      final int uid = (int) (Sockets.peer(fd) >>> 32);
      if (uid != Descriptor.userId()) {
        throw failure("the other end is of user " + Integer.toUnsignedString(uid), "");
      }
      undo.done();
    }
  }

  /** The folder of the daemon: the one that is set, or this user's. */
  public static Path folder(final @Nullable Path set) {
    NativeLibrary.require();
    return set == null
        ? Path.of("/tmp/zerohop-keeper-" + Integer.toUnsignedString(Descriptor.userId()))
        : set;
  }

  /**
   * Asks the daemon.
   *
   * @param base its folder
   * @param start absent to ask how it is
   * @param limit longest time
   * @throws ZerohopException (FALLBACK) if it does not answer, has another version, or is not this
   *     user's
   */
  public static Answer ask(final Path base, final @Nullable Start start, final Duration limit) {
    NativeLibrary.require();
    final Path folder = base.resolve(KeeperShare.FOLDER);
    try {
      for (final Path path : new Path[] {base, folder}) {
        if (!Descriptor.statusOf(path.toString()).isPrivateFolder()) {
          throw failure(path + " is not a folder of this user alone", "run chmod 700 " + path);
        }
      }
      final int fd = Sockets.connect(folder.resolve(SOCKET).toString());
      try (DaemonLink link = new DaemonLink(fd, Deadline.in(limit))) {
        link.send(start == null ? Kind.STATUS : Kind.START, payload(start));
        return link.answer();
      }
    } catch (final PosixException e) {
      throw new ZerohopException(
          Category.FALLBACK, Message.of("no daemon answers").at(folder.toString()).because(e), e);
    }
  }

  private static byte[] payload(final @Nullable Start start) {
    if (start == null) {
      return new byte[0];
    }
    final byte[] classPath = start.classPath.getBytes(StandardCharsets.UTF_8);
    final int bytes = 2 * Long.BYTES + APPLICATION_BYTES + 2 * Integer.BYTES;
    final ByteBuffer out = ByteBuffer.allocate(bytes + classPath.length + start.orders.length);
    out.putLong(start.bytes).putLong(start.fileBytes);
    out.put(start.application, 0, APPLICATION_BYTES);
    out.putInt(classPath.length).put(classPath).putInt(start.orders.length).put(start.orders);
    return out.array();
  }

  /**
   * Waits for a request.
   *
   * @return absent if it is a question
   * @throws ZerohopException (FALLBACK) if it does not come in time, or is none
   */
  public @Nullable Start request() {
    final Frame frame = receive(MAX_REQUEST_BYTES);
    final ByteBuffer in = ByteBuffer.wrap(frame.payload);
    if (frame.kind == Kind.STATUS) {
      return null;
    }
    if (frame.kind != Kind.START || in.remaining() < 2 * Long.BYTES + APPLICATION_BYTES) {
      throw failure("bytes that are no request", "");
    }
    final long bytes = in.getLong();
    final long fileBytes = in.getLong();
    final byte[] application = new byte[APPLICATION_BYTES];
    in.get(application);
    final byte[] classPath = sized(in, MAX_CLASS_PATH_BYTES);
    final byte[] orders = sized(in, MAX_REQUEST_BYTES);
    return new Start(
        bytes, fileBytes, application, new String(classPath, StandardCharsets.UTF_8), orders);
  }

  private static byte[] sized(final ByteBuffer in, final int maxBytes) {
    final int length = in.remaining() < Integer.BYTES ? -1 : in.getInt();
    if (length < 0 || length > in.remaining()) {
      throw failure("a request is cut off", "");
    }
    if (length > maxBytes) {
      throw failure("a class path of " + length + " bytes; at most " + maxBytes + " are taken", "");
    }
    final byte[] bytes = new byte[length];
    in.get(bytes);
    return bytes;
  }

  /** Answers. */
  public void answer(final Answer answer) {
    final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (DataOutputStream out = new DataOutputStream(bytes)) {
      out.writeUTF(answer.release);
      out.writeLong(answer.bytes);
      out.writeLong(answer.left);
      out.writeInt(answer.keepers);
      out.writeInt(answer.maxKeepers);
      out.writeUTF(answer.text.substring(0, Math.min(answer.text.length(), MAX_TEXT)));
    } catch (final IOException e) {
      throw new IllegalStateException(e);
    }
    send(answer.kind, bytes.toByteArray());
  }

  private Answer answer() {
    final Frame frame = receive(MAX_ANSWER_BYTES);
    if (!frame.kind.isAnswer()) {
      throw failure("bytes that are no answer", "");
    }
    try (DataInputStream in = new DataInputStream(new ByteArrayInputStream(frame.payload))) {
      return new Answer(
          frame.kind,
          in.readUTF(),
          in.readLong(),
          in.readLong(),
          in.readInt(),
          in.readInt(),
          in.readUTF());
    } catch (final IOException e) {
      throw failure("an answer is cut off", "");
    }
  }

  private record Frame(Kind kind, byte[] payload) {}

  private void send(final Kind kind, final byte[] payload) {
    final ByteBuffer frame = ByteBuffer.allocate(HEADER_BYTES + payload.length);
    frame.putInt(MAGIC).put(VERSION).put((byte) kind.ordinal()).putInt(payload.length).put(payload);
    final byte[] bytes = frame.array();
    int sent = 0;
    while (sent < bytes.length) {
      final int part = Math.min(Sockets.MAX_MESSAGE_BYTES, bytes.length - sent);
      final int count = Sockets.send(fd, bytes, sent, part, Sockets.NO_DESCRIPTOR);
      if (count < 0) {
        await(Sockets.WRITABLE);
      } else {
        sent += count;
      }
    }
  }

  private Frame receive(final int maxBytes) {
    final ByteBuffer header = ByteBuffer.wrap(receiveAll(HEADER_BYTES));
    if (header.getInt() != MAGIC) {
      throw failure("bytes of another protocol", "");
    }
    final byte version = header.get();
    if (version != VERSION) {
      throw failure(
          "the other end has version " + version + " of the protocol, this one " + VERSION,
          "run the daemon and the application with jars of one release, this one is "
              + JarVersion.own());
    }
    final int kind = header.get();
    final int length = header.getInt();
    if (kind < 0 || kind >= Kind.VALUES.length || length < 0 || length > maxBytes) {
      throw failure("a frame of unknown kind or wrong length", "");
    }
    return new Frame(Kind.VALUES[kind], receiveAll(length));
  }

  private byte[] receiveAll(final int bytes) {
    final byte[] all = new byte[bytes];
    int received = 0;
    while (received < bytes) {
      final int part = Math.min(Sockets.MAX_MESSAGE_BYTES, bytes - received);
      final int count = Sockets.receive(fd, all, received, part, null);
      if (count == 0) {
        throw failure("the other end has closed the connection", "");
      } else if (count < 0) {
        await(Sockets.READABLE);
      } else {
        received += count;
      }
    }
    return all;
  }

  private void await(final int event) {
    if (deadline.isOver()) {
      throw failure("the other end did not go on in time", "");
    }
    Sockets.poll(new int[] {fd}, new int[] {event}, 1, deadline.remainingMillis());
  }

  private static ZerohopException failure(final String what, final String remedy) {
    return new ZerohopException(Category.FALLBACK, Message.of(what).remedy(remedy));
  }

  /** Idempotent. */
  @Override
  public void close() {
    if (!closed) {
      closed = true;
      Descriptor.close(fd);
    }
  }
}
