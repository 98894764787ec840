package io.zerohop.device.exchange;

import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.exchange.Frame.FrameDecoder;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.PosixException;
import io.zerohop.device.posix.Sockets;

/**
 * Sends and receives whole frames, waiting up to a deadline. Owns descriptors that came with frames
 * until they are taken, not the socket. Used by one thread at a time.
 */
final class FrameChannel {
  private static final int NONE = Sockets.NO_DESCRIPTOR;

  private final int fd;
  private final String peer;
  private final FrameDecoder decoder = new FrameDecoder();
  private final byte[] buffer = new byte[Frame.MAX_FRAME_BYTES];
  private final int[] received = new int[1];
  private int descriptor = NONE;

  FrameChannel(final int fd, final String peer) {
    this.fd = fd;
    this.peer = peer;
  }

  void send(final Frame frame, final Deadline deadline) {
    final byte[] bytes = frame.encode();
    int sent = 0;
    while (sent < bytes.length) {
      final int count = sendSome(bytes, sent, deadline);
      if (count < 0) {
        await(Sockets.WRITABLE, deadline);
      } else {
        sent += count;
      }
    }
  }

  private int sendSome(final byte[] bytes, final int offset, final Deadline deadline) {
    try {
      return Sockets.send(fd, bytes, offset, bytes.length - offset, NONE);
    } catch (final PosixException e) {
      throw refusalOrClosed(e, deadline);
    }
  }

  /**
   * A server that refuses says so before it closes, which may make a later send fail first. What it
   * sent before that is dropped, but not beyond the deadline: it may never end.
   */
  private ExchangeException refusalOrClosed(final PosixException cause, final Deadline deadline) {
    try {
      while (!deadline.isOver()) {
        final Frame frame = decoder.next();
        if (frame != null && frame.type() == Frame.Type.REFUSED) {
          return refused(frame);
        }
        if (frame == null && receiveSome() <= 0) {
          break;
        }
      }
    } catch (final ExchangeException e) {
      return e;
    } finally {
      closeDescriptor();
    }
    return new ExchangeException(Reason.CLOSED, peer + " closed the connection", cause);
  }

  /** The next frame, which must be of this type and without a descriptor. */
  Frame receive(final Frame.Type type, final Deadline deadline) {
    final Frame frame = receive(deadline);
    final int unexpected = descriptor;
    closeDescriptor();
    if (frame.type() != type || unexpected != NONE) {
      throw new ExchangeException(
          Reason.PROTOCOL, peer + " sent " + frame.type() + " where " + type + " was due");
    }
    return frame;
  }

  /**
   * The next frame; see {@link #takeDescriptor} for what came with it.
   *
   * @throws ExchangeException also when the peer refuses, with the peer's reason
   */
  Frame receive(final Deadline deadline) {
    boolean done = false;
    try {
      Frame frame = decoder.next();
      while (frame == null) {
        final int count = receiveSome();
        if (count == 0) {
          throw new ExchangeException(Reason.CLOSED, peer + " closed the connection");
        }
        if (count < 0) {
          await(Sockets.READABLE, deadline);
        }
        frame = decoder.next();
      }
      if (frame.type() == Frame.Type.REFUSED) {
        throw refused(frame);
      }
      done = true;
      return frame;
    } finally {
      if (!done) {
        closeDescriptor();
      }
    }
  }

  private ExchangeException refused(final Frame frame) {
    return new ExchangeException(
        frame.asReason(), peer + " refused the connection: " + frame.asReason());
  }

  private int receiveSome() {
    final int count;
    try {
      received[0] = NONE;
      count = Sockets.receive(fd, buffer, 0, Math.min(buffer.length, decoder.room()), received);
    } catch (final PosixException e) {
      throw new ExchangeException(Reason.CLOSED, "the connection to " + peer + " broke", e);
    }
    if (count > 0) {
      keep(received[0]);
      decoder.append(buffer, 0, count);
    }
    return count;
  }

  private void keep(final int passed) {
    if (passed == NONE) {
      return;
    }
    if (passed != Sockets.SEVERAL_DESCRIPTORS && descriptor == NONE) {
      descriptor = passed;
      return;
    }
    if (passed >= 0) {
      Descriptor.close(passed);
    }
    throw new ExchangeException(Reason.PROTOCOL, peer + " sent several descriptors at once");
  }

  /**
   * The descriptor that came with what was received, now the caller's; {@link
   * Sockets#NO_DESCRIPTOR} when there is none, {@link Sockets#LOST_DESCRIPTOR} when it was dropped.
   */
  int takeDescriptor() {
    final int taken = descriptor;
    descriptor = NONE;
    return taken;
  }

  /** Closes what came and is not wanted. */
  private void closeDescriptor() {
    final int unused = takeDescriptor();
    if (unused >= 0) {
      Descriptor.close(unused);
    }
  }

  private void await(final int event, final Deadline deadline) {
    if (deadline.isOver()) {
      throw new ExchangeException(Reason.TIMEOUT, peer + " did not answer in time");
    }
    Sockets.poll(new int[] {fd}, new int[] {event}, 1, deadline.remainingMillis());
  }
}
