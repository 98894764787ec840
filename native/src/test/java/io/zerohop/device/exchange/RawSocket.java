package io.zerohop.device.exchange;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.exchange.Frame.FrameDecoder;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.PosixException;
import io.zerohop.device.posix.Sockets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Set;

/** A peer that sends whatever a test wants. Owns its descriptor. */
final class RawSocket implements AutoCloseable {
  private static final Duration LIMIT = Duration.ofSeconds(60);
  private static final Set<Frame.Type> SEALED =
      EnumSet.of(
          Frame.Type.FETCH,
          Frame.Type.SEGMENT,
          Frame.Type.GONE,
          Frame.Type.WITHHELD,
          Frame.Type.BORROW,
          Frame.Type.RETURN);
  private static final Set<Frame.Type> REQUESTS =
      EnumSet.of(Frame.Type.FETCH, Frame.Type.BORROW, Frame.Type.RETURN);

  private final int fd;
  private final FrameDecoder decoder = new FrameDecoder();
  private final byte[] buffer = new byte[Frame.MAX_FRAME_BYTES];

  /** Null until hands were shaken. */
  private Proofs.Seals seals;

  private long requests;

  RawSocket(final int fd) {
    this.fd = fd;
  }

  static RawSocket connect(final Path socket) {
    final Deadline deadline = Deadline.in(LIMIT);
    while (true) {
      try {
        return new RawSocket(Sockets.connect(socket.toString()));
      } catch (final PosixException e) {
        if (e.errno() != PosixException.EAGAIN || deadline.isOver()) {
          throw e;
        }
        Thread.onSpinWait();
      }
    }
  }

  /** Waits for a connection on a listening descriptor. */
  static RawSocket accept(final int listener) {
    Sockets.poll(new int[] {listener}, new int[] {Sockets.READABLE}, 1, 60_000);
    final int fd = Sockets.accept(listener);
    assertThat(fd).isNotNegative();
    return new RawSocket(fd);
  }

  RawSocket send(final Frame frame) {
    return send(frame, -1);
  }

  RawSocket send(final Frame frame, final int passed) {
    send(sealed(frame), passed);
    return this;
  }

  /** The frame as it is sent: what follows a handshake is sealed, with the number that is due. */
  byte[] sealed(final Frame frame) {
    if (seals == null || !SEALED.contains(frame.type())) {
      return frame.encode();
    }
    requests += REQUESTS.contains(frame.type()) ? 1 : 0;
    return seals.seal(frame, requests).encode();
  }

  /** Sends as much as the peer takes; false when it has closed or takes no more. */
  boolean send(final byte[] bytes, final int passed) {
    int sent = 0;
    try {
      while (sent < bytes.length) {
        final int count =
            Sockets.send(fd, bytes, sent, bytes.length - sent, sent == 0 ? passed : -1);
        if (count < 0) {
          return false;
        }
        sent += count;
      }
      return true;
    } catch (final PosixException e) {
      assertThat(e.call()).isEqualTo("sendmsg");
      return false;
    }
  }

  /** Sends all of it, as the peer takes it. */
  void sendAll(final byte[] bytes) {
    int sent = 0;
    while (sent < bytes.length) {
      final int count = Sockets.send(fd, bytes, sent, bytes.length - sent, -1);
      if (count < 0) {
        Sockets.poll(new int[] {fd}, new int[] {Sockets.WRITABLE}, 1, 1_000);
      } else {
        sent += count;
      }
    }
  }

  /** Reads whatever comes, until the end of the stream. */
  void discardAll() {
    while (Sockets.receive(fd, buffer, 0, buffer.length, null) != 0) {
      Sockets.poll(new int[] {fd}, new int[] {Sockets.READABLE}, 1, 1_000);
    }
  }

  /** The next frame, less its seal, which is not looked at; null at the end of the stream. */
  Frame receive() {
    final Deadline deadline = Deadline.in(LIMIT);
    while (!deadline.isOver()) {
      final Frame frame = decoder.next();
      if (frame != null && SEALED.contains(frame.type())) {
        requests += REQUESTS.contains(frame.type()) ? 1 : 0;
        final int length = frame.payload().length - Frame.SEAL_BYTES;
        return new Frame(frame.type(), Arrays.copyOf(frame.payload(), length));
      }
      if (frame != null) {
        return frame;
      }
      final int count = Sockets.receive(fd, buffer, 0, buffer.length, null);
      if (count == 0) {
        return null;
      }
      if (count > 0) {
        decoder.append(buffer, 0, count);
      } else {
        Sockets.poll(new int[] {fd}, new int[] {Sockets.READABLE}, 1, 1_000);
      }
    }
    throw new AssertionError("no answer within " + LIMIT);
  }

  Frame receive(final Frame.Type type) {
    final Frame frame = receive();
    assertThat(frame).isNotNull();
    assertThat(frame.type()).isEqualTo(type);
    return frame;
  }

  /** Plays a client up to and with its WELCOME. */
  RawSocket shakeHands(final String self, final String peer) {
    final Frame.Hello hello = new Frame.Hello(Proofs.newNonce(), self, peer);
    send(Frame.hello(hello.nonce(), self, peer));
    final byte[] nonce = receive(Frame.Type.CHALLENGE).payload(); // And the server's process.
    final byte[] proof = new Proofs(SegmentTable.SECRET).ofClient(hello, nonce);
    send(new Frame(Frame.Type.ANSWER, proof));
    final byte[] welcome = receive(Frame.Type.WELCOME).payload();
    final byte[] greeting = Arrays.copyOfRange(welcome, Frame.PROOF_BYTES, welcome.length);
    seals = new Proofs(SegmentTable.SECRET).seals(hello, nonce, greeting);
    return this;
  }

  /** Plays a server up to and with its WELCOME, under a secret of the test's choice. */
  RawSocket welcome(final byte[] secret) {
    final Frame.Hello hello = receive(Frame.Type.HELLO).asHello();
    final Frame challenge = Frame.challenge(Proofs.newNonce(), ProcessIdentity.self());
    send(challenge);
    receive(Frame.Type.ANSWER);
    final Proofs proofs = new Proofs(secret);
    final byte[] proof = proofs.ofServer(hello, challenge.payload(), new byte[0]);
    send(Frame.welcome(proof, new byte[0]));
    seals = proofs.seals(hello, challenge.payload(), new byte[0]);
    return this;
  }

  @Override
  public void close() {
    Descriptor.close(fd);
  }
}
