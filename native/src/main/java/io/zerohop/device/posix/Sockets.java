package io.zerohop.device.posix;

import java.nio.charset.StandardCharsets;
import java.util.function.ToIntFunction;
import org.jspecify.annotations.Nullable;

/**
 * Unix-domain stream sockets, never blocking except in {@link #poll}. All sockets are closed on
 * exec. Failures are {@link PosixException}s.
 */
public final class Sockets {
  /** Poll event: there is something to read. */
  public static final int READABLE = 1;

  /** Poll event: there is room to write. */
  public static final int WRITABLE = 2;

  /** Poll event: the peer is gone. Told unasked once both directions ended. */
  public static final int GONE = 4;

  /** Received instead of a descriptor: none came. */
  public static final int NO_DESCRIPTOR = -1;

  /** Received instead of a descriptor: several came, and all were closed. */
  public static final int SEVERAL_DESCRIPTORS = -2;

  /**
   * Received instead of a descriptor: one came and was dropped, since this process has as many open
   * as it may ({@code ulimit -n}).
   */
  public static final int LOST_DESCRIPTOR = -3;

  /** Longest path that the kernel takes, in bytes ({@code sun_path} less its final zero). */
  private static final int MAX_PATH_BYTES = 107;

  /** Most bytes that one {@link #send} or {@link #receive} moves. */
  public static final int MAX_MESSAGE_BYTES = 4096;

  /** Most descriptors in one {@link #poll}. */
  public static final int MAX_POLL = 4096;

  private Sockets() {}

  /** Creates, binds and listens; the caller owns the descriptor and the file. */
  public static int listen(final String path, final int backlog) {
    return at(path, shorter -> listenAt(shorter, backlog));
  }

  /** Connects at once or fails: {@code EAGAIN} means that the backlog is full now. */
  public static int connect(final String path) {
    return at(path, Sockets::connectTo);
  }

  /** A path that is too long for a socket is named by its folder's descriptor. */
  private static int at(final String path, final ToIntFunction<String> call) {
    final int slash = path.lastIndexOf('/');
    if (slash < 1 || path.getBytes(StandardCharsets.UTF_8).length <= MAX_PATH_BYTES) {
      return call.applyAsInt(path);
    }
    final int folder = Descriptor.openFolder(path.substring(0, slash));
    try {
      return call.applyAsInt("/proc/self/fd/" + folder + path.substring(slash));
    } finally {
      Descriptor.close(folder);
    }
  }

  private static native int listenAt(String path, int backlog);

  private static native int connectTo(String path);

  /** The next connection, which the caller owns, or -1 when none is waiting. */
  public static native int accept(int listener);

  /** Who opened the other end: {@code uid << 32 | pid}, as the kernel saw it then. */
  public static native long peer(int fd);

  /**
   * The inode of this process's pidfd, which no other process has as long as the system runs; 0
   * before Linux 6.9.
   */
  public static native long ownProcess();

  /**
   * The same of the process that opened the other end; 0 also where the kernel does not tell.
   *
   * @throws PosixException if this process has no descriptor left to ask by
   */
  public static native long peerProcess(int fd);

  /** Ends both directions; the peer and local sleepers notice at once. */
  public static native void shutdown(int fd);

  /**
   * Sends what fits now.
   *
   * @param passed a descriptor to pass with the first byte, or -1; it stays the caller's
   * @return bytes sent; -1 when there is no room
   */
  public static native int send(int fd, byte[] data, int offset, int count, int passed);

  /**
   * Receives what is there now.
   *
   * @param descriptor one word that receives a passed descriptor, which the caller then owns, or
   *     {@link #NO_DESCRIPTOR}, {@link #SEVERAL_DESCRIPTORS} or {@link #LOST_DESCRIPTOR}. Without
   *     it all are refused
   * @return bytes received; 0 at the end of the stream; -1 when nothing is there
   */
  public static native int receive(
      int fd, byte[] data, int offset, int count, int @Nullable [] descriptor);

  /**
   * Waits for events of the first {@code count} descriptors and replaces each wish in {@code
   * events} by what happened.
   *
   * @param millis longest wait; may return earlier with nothing
   * @return descriptors with events
   */
  public static native int poll(int[] fds, int[] events, int count, int millis);

  /** A descriptor that becomes readable by {@link #wakeup} and stays so until {@link #drain}. */
  public static native int newWakeup();

  public static native void wakeup(int fd);

  public static native void drain(int fd);
}
