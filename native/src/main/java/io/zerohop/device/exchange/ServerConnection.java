package io.zerohop.device.exchange;

import io.zerohop.device.SegmentHandle;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.PosixException;
import io.zerohop.device.posix.Sockets;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The socket of one session. Only one reply is pending at a time, and nothing is read meanwhile, so
 * a peer that asks and never reads ties up one frame and one descriptor, for a limited time.
 */
final class ServerConnection {
  /**
   * Replies of one turn, so that a peer which asks without end does not keep the server's thread
   * from the others.
   */
  static final int MAX_REPLIES = 16;

  private final int fd;
  private final ServerSession session;
  private final Duration stallLimit;
  private @Nullable Deadline deadline;
  private ServerSession.@Nullable Reply pending;
  private int sent;
  private boolean hasMore;
  private boolean closed;

  ServerConnection(
      final int fd,
      final ServerSession session,
      final Duration handshakeLimit,
      final Duration stallLimit) {
    this.fd = fd;
    this.session = session;
    this.deadline = Deadline.in(handshakeLimit);
    this.stallLimit = stallLimit;
  }

  int fd() {
    return fd;
  }

  ServerSession session() {
    return session;
  }

  boolean isClosed() {
    return closed;
  }

  int wantedEvents() {
    return pending == null ? Sockets.READABLE : Sockets.WRITABLE;
  }

  /** Whether it has more to do whatever the socket says: frames that were received may wait. */
  boolean hasMore() {
    return hasMore;
  }

  /** When this connection must have got on; absent when it may rest. */
  @Nullable Deadline deadline() {
    return deadline;
  }

  /**
   * Does what the socket allows now, up to {@link #MAX_REPLIES} requests.
   *
   * @return false at the end of the stream
   * @throws ExchangeException if the peer must be refused
   */
  boolean progress(final byte[] buffer) {
    hasMore = false;
    int replies = 0;
    while (true) {
      if (pending != null && !flush(pending)) {
        return true;
      }
      if (replies == MAX_REPLIES) {
        hasMore = true;
        return true;
      }
      final boolean wasOpen = session.isOpen();
      final ServerSession.Reply reply = session.next();
      if (!wasOpen && session.isOpen()) {
        deadline = null;
      }
      if (reply != null) {
        pending = reply;
        sent = 0;
        replies++;
        continue;
      }
      final int count =
          Sockets.receive(fd, buffer, 0, Math.min(buffer.length, session.room()), null);
      if (count == 0) {
        checkWhole();
        return false;
      }
      if (count < 0) {
        return true;
      }
      session.receive(buffer, 0, count);
    }
  }

  private void checkWhole() {
    if (session.isIncomplete()) {
      throw new ExchangeException(Reason.CLOSED, "a connection that stopped half way");
    }
  }

  /** Sends the pending reply as far as it goes; true when it is gone. */
  private boolean flush(final ServerSession.Reply reply) {
    final byte[] bytes = reply.bytes();
    while (sent < bytes.length) {
      final int count =
          Sockets.send(fd, bytes, sent, bytes.length - sent, sent == 0 ? passedFd(reply) : -1);
      if (count < 0) {
        if (session.isOpen() && deadline == null) {
          deadline = Deadline.in(stallLimit);
        }
        return false;
      }
      sent += count;
    }
    dropPending();
    if (session.isOpen()) {
      deadline = null;
    }
    return true;
  }

  private static int passedFd(final ServerSession.Reply reply) {
    final SegmentHandle handle = reply.handle();
    return handle != null && handle.kind() == SegmentHandle.Kind.POSIX_FD ? handle.fd() : -1;
  }

  private void dropPending() {
    final SegmentHandle handle = pending == null ? null : pending.handle();
    pending = null;
    if (handle != null) {
      handle.close();
    }
  }

  /** Says why, if there is room for it. */
  void refuse(final Reason reason) {
    if (pending == null) {
      final byte[] bytes = Frame.refused(reason).encode();
      try {
        Sockets.send(fd, bytes, 0, bytes.length, -1);
      } catch (final PosixException e) {
        // The peer has gone; nobody is left to be told.
        return;
      }
    }
  }

  /** Closes the socket, then tells the directory. Idempotent. */
  void close() {
    if (!closed) {
      closed = true;
      try {
        dropPending();
      } finally {
        Descriptor.close(fd);
        session.end();
      }
    }
  }
}
