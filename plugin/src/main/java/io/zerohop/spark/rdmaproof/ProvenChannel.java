package io.zerohop.spark.rdmaproof;

import io.zerohop.device.Undo;
import io.zerohop.device.exchange.Hmac;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Threads;
import io.zerohop.spark.rdmaproof.ProofLine.ProofWords;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.List;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.jspecify.annotations.Nullable;

/**
 * A connection between two processes that know one secret. Each proves it by an HMAC-SHA256 over
 * its role and both nonces, the one that connects first, so that a listener says nothing to a
 * stranger but a nonce. All that follows is encrypted by AES/GCM under keys of this connection, one
 * for each direction, with the message's number as nonce: no message can be read, changed,
 * repeated, left out or turned around. Reads have limits of their own; a write ends by {@link
 * #closeIn}. One thread at a time sends, and one receives.
 */
final class ProvenChannel implements AutoCloseable {
  /** Of one message, encrypted. */
  static final int MAX_BYTES = 1 << 20;

  private static final byte[] MAGIC = "zerohop-proof-1\n".getBytes(StandardCharsets.US_ASCII);
  private static final int NONCE_BYTES = 32;
  private static final int PROOF_BYTES = 32;
  private static final int GCM_NONCE_BYTES = 12;
  private static final int TAG_BITS = 128;

  private final Socket socket;
  private final SecretKeySpec sending;
  private final SecretKeySpec receiving;
  private long sent;
  private long received;
  private volatile boolean over;

  /** The keys of the two directions. */
  private record Keys(SecretKeySpec sending, SecretKeySpec receiving) {}

  /**
   * Proves, and has the other side prove itself; closes the socket if that fails.
   *
   * @param server to connect to; absent at the server
   */
  private ProvenChannel(
      final Socket socket,
      final @Nullable InetSocketAddress server,
      final byte[] secret,
      final Duration limit)
      throws IOException {
    final Deadline deadline = Deadline.in(limit);
    this.socket = socket;
    try (Undo undo = new Undo(socket)) {
      if (server != null) {
        socket.connect(server, deadline.remainingMillis());
      }
      socket.setTcpNoDelay(true);
      final Keys keys =
          server == null ? proveAsServer(secret, deadline) : proveAsClient(secret, deadline);
      this.sending = keys.sending();
      this.receiving = keys.receiving();
      undo.done();
    }
  }

  /**
   * Connects and proves.
   *
   * @param limit for all of it
   * @throws IOException if nobody answers there in time, or who answers does not know the secret
   */
  static ProvenChannel connect(
      final InetSocketAddress address, final byte[] secret, final Duration limit)
      throws IOException {
    return new ProvenChannel(new Socket(), address, secret, limit);
  }

  /** Takes a connection over, which is closed if the other side does not prove itself in time. */
  static ProvenChannel accept(final Socket socket, final byte[] secret, final Duration limit)
      throws IOException {
    return new ProvenChannel(socket, null, secret, limit);
  }

  private Keys proveAsClient(final byte[] secret, final Deadline deadline) throws IOException {
    final byte[] own = Hmac.random(NONCE_BYTES);
    write(MAGIC, own);
    final byte[] theirs = read(NONCE_BYTES, deadline);
    write(hmac(secret, "client", own, theirs));
    if (!MessageDigest.isEqual(hmac(secret, "server", own, theirs), read(PROOF_BYTES, deadline))) {
      throw new IOException("the responding host does not know the secret");
    }
    return new Keys(
        key(hmac(secret, "to server", own, theirs)), key(hmac(secret, "to client", own, theirs)));
  }

  private Keys proveAsServer(final byte[] secret, final Deadline deadline) throws IOException {
    if (!MessageDigest.isEqual(MAGIC, read(MAGIC.length, deadline))) {
      throw new IOException("it does not speak this protocol");
    }
    final byte[] theirs = read(NONCE_BYTES, deadline);
    final byte[] own = Hmac.random(NONCE_BYTES);
    write(own);
    if (!MessageDigest.isEqual(hmac(secret, "client", theirs, own), read(PROOF_BYTES, deadline))) {
      throw new IOException("it does not know the secret");
    }
    write(hmac(secret, "server", theirs, own));
    return new Keys(
        key(hmac(secret, "to client", theirs, own)), key(hmac(secret, "to server", theirs, own)));
  }

  private static byte[] hmac(
      final byte[] secret, final String role, final byte[] client, final byte[] server) {
    return Hmac.of(secret, MAGIC, role.getBytes(StandardCharsets.US_ASCII), client, server);
  }

  private static SecretKeySpec key(final byte[] bytes) {
    return new SecretKeySpec(bytes, "AES");
  }

  /** Closes it after so long, which ends what waits in it. */
  void closeIn(final Duration limit) {
    Threads.daemon(
            () -> {
              try {
                Clock.system().sleep(limit);
                over = true;
                close();
              } catch (final InterruptedException | IOException e) {
                return; // It is closed, or the process ends.
              }
            },
            "proof-limit")
        .start();
  }

  /** The own end's address, by which the other one reaches this host. */
  InetSocketAddress localAddress() {
    return (InetSocketAddress) socket.getLocalSocketAddress();
  }

  /** Sends a message, whose words have neither tabs nor line ends. */
  void send(final List<String> words) throws IOException {
    final byte[] plain = ProofWords.join(words).getBytes(StandardCharsets.UTF_8);
    final byte[] message = cipher(Cipher.ENCRYPT_MODE, sending, sent++, plain);
    if (message.length > MAX_BYTES) {
      throw new IOException("a message of " + message.length + " bytes is too long");
    }
    write(ByteBuffer.allocate(Integer.BYTES).putInt(message.length).array(), message);
  }

  /**
   * Waits for a message.
   *
   * @throws IOException if none comes in time, or it was not sent by the other side as it is
   */
  List<String> receive(final Duration limit) throws IOException {
    final Deadline deadline = Deadline.in(limit);
    final int bytes = ByteBuffer.wrap(read(Integer.BYTES, deadline)).getInt();
    if (bytes < 0 || bytes > MAX_BYTES) {
      throw new IOException("a message of " + bytes + " bytes was announced");
    }
    final byte[] plain = cipher(Cipher.DECRYPT_MODE, receiving, received++, read(bytes, deadline));
    return ProofWords.split(new String(plain, StandardCharsets.UTF_8));
  }

  private static byte[] cipher(
      final int mode, final SecretKeySpec key, final long number, final byte[] text)
      throws IOException {
    try {
      final Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
      final byte[] nonce = ByteBuffer.allocate(GCM_NONCE_BYTES).putInt(0).putLong(number).array();
      cipher.init(mode, key, new GCMParameterSpec(TAG_BITS, nonce));
      return cipher.doFinal(text);
    } catch (final GeneralSecurityException e) {
      throw new IOException("a message is not what the other side has sent", e);
    }
  }

  private void write(final byte[]... parts) throws IOException {
    int bytes = 0;
    for (final byte[] part : parts) {
      bytes += part.length;
    }
    final ByteBuffer all = ByteBuffer.allocate(bytes);
    for (final byte[] part : parts) {
      all.put(part);
    }
    try {
      socket.getOutputStream().write(all.array());
    } catch (final SocketException e) {
      throw ended(e);
    }
  }

  private IOException ended(final SocketException cause) {
    return over ? new IOException("the time of the proof (--limit) is over", cause) : cause;
  }

  private byte[] read(final int bytes, final Deadline deadline) throws IOException {
    final InputStream in = socket.getInputStream();
    final byte[] all = new byte[bytes];
    int done = 0;
    while (done < bytes) {
      final int count;
      try {
        socket.setSoTimeout(Math.max(1, deadline.remainingMillis()));
        count = in.read(all, done, bytes - done);
      } catch (final SocketTimeoutException e) {
        throw new IOException("nothing came in time", e);
      } catch (final SocketException e) {
        throw ended(e);
      }
      if (deadline.isOver()) {
        throw new IOException("it takes too long");
      }
      if (count < 0) {
        throw new IOException("the other side has closed the connection");
      }
      done += count;
    }
    return all;
  }

  @Override
  public void close() throws IOException {
    socket.close();
  }
}
