package io.zerohop.spark.rdmaproof;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Who knows the secret is heard, and strangers get nothing. */
@Timeout(60)
class ProvenChannelTest {
  private static final byte[] SECRET = "s".repeat(32).getBytes(StandardCharsets.UTF_8);
  private static final byte[] OTHER = "t".repeat(32).getBytes(StandardCharsets.UTF_8);
  private static final Duration LIMIT = Duration.ofSeconds(20);
  private static final int HELLO_BYTES = 48;
  private static final int NONCE_BYTES = 32;

  private ServerSocket server;

  @BeforeEach
  void listen() throws IOException {
    server = new ServerSocket(0, 8, InetAddress.getLoopbackAddress());
  }

  @AfterEach
  void close() throws IOException {
    server.close();
  }

  private InetSocketAddress address() {
    return (InetSocketAddress) server.getLocalSocketAddress();
  }

  private CompletableFuture<ProvenChannel> accepted(final Duration limit) {
    return CompletableFuture.supplyAsync(
        () -> {
          try {
            return ProvenChannel.accept(server.accept(), SECRET, limit);
          } catch (final IOException e) {
            throw new CompletionException(e);
          }
        });
  }

  private static String failure(final CompletableFuture<ProvenChannel> server) throws Exception {
    try {
      server.get(20, TimeUnit.SECONDS).close();
      return "";
    } catch (final java.util.concurrent.ExecutionException e) {
      return e.getCause().getMessage();
    }
  }

  @Test
  void bothHearEachOther() throws Exception {
    final CompletableFuture<ProvenChannel> accepted = accepted(LIMIT);
    try (ProvenChannel client = ProvenChannel.connect(address(), SECRET, LIMIT);
        ProvenChannel other = accepted.get(20, TimeUnit.SECONDS)) {
      for (int i = 0; i < 3; i++) {
        client.send(List.of("a question", "", "\u00e9" + i));
        assertThat(other.receive(LIMIT)).containsExactly("a question", "", "\u00e9" + i);
        other.send(List.of("an answer"));
        assertThat(client.receive(LIMIT)).containsExactly("an answer");
      }
      assertThatThrownBy(() -> client.receive(Duration.ofMillis(20)))
          .hasMessageContaining("nothing came in time");
    }
  }

  @Test
  void whoDoesNotKnowTheSecretIsRefused() throws Exception {
    final CompletableFuture<ProvenChannel> accepted = accepted(LIMIT);
    assertThatThrownBy(() -> ProvenChannel.connect(address(), OTHER, LIMIT))
        .isInstanceOf(IOException.class);
    assertThat(failure(accepted)).isEqualTo("it does not know the secret");
  }

  /** It passes the proof of a client back, which is no server's. */
  @Test
  void aListenerThatDoesNotKnowTheSecretIsRefused() throws Exception {
    final CompletableFuture<Void> impostor =
        CompletableFuture.runAsync(
            () -> {
              try (Socket socket = server.accept()) {
                socket.getInputStream().readNBytes(HELLO_BYTES);
                socket.getOutputStream().write(new byte[NONCE_BYTES]);
                socket.getOutputStream().write(socket.getInputStream().readNBytes(NONCE_BYTES));
                socket.getInputStream().read();
              } catch (final IOException e) {
                throw new CompletionException(e);
              }
            });
    assertThatThrownBy(() -> ProvenChannel.connect(address(), SECRET, LIMIT))
        .hasMessageContaining("does not know the secret");
    impostor.get(20, TimeUnit.SECONDS);
  }

  @Test
  void aStrangerGetsANonceAndNothingElse() throws Exception {
    final CompletableFuture<ProvenChannel> accepted = accepted(Duration.ofSeconds(2));
    try (Socket stranger = new Socket(address().getAddress(), address().getPort())) {
      stranger.getOutputStream().write("zerohop-proof-1\n".getBytes(StandardCharsets.US_ASCII));
      stranger.getOutputStream().write(new byte[NONCE_BYTES]);
      // It says no more, and the connection ends.
      assertThat(stranger.getInputStream().readAllBytes()).hasSize(NONCE_BYTES);
    }
    assertThat(failure(accepted)).isEqualTo("nothing came in time");
  }

  @ParameterizedTest
  @ValueSource(strings = {"GET / HTTP/1.1\r\nHost: anybody\r\n\r\n", "zerohop-proof-2\n"})
  void whoSpeaksAnotherProtocolGetsNothing(final String words) throws Exception {
    final CompletableFuture<ProvenChannel> accepted = accepted(LIMIT);
    try (Socket stranger = new Socket(address().getAddress(), address().getPort())) {
      stranger.getOutputStream().write(words.getBytes(StandardCharsets.US_ASCII));
      stranger.shutdownOutput();
      assertThat(read(stranger)).isEmpty();
    }
    assertThat(failure(accepted)).isEqualTo("it does not speak this protocol");
  }

  private static byte[] read(final Socket socket) throws IOException {
    try {
      return socket.getInputStream().readAllBytes();
    } catch (final java.net.SocketException reset) { // What it had sent was not read to its end.
      return new byte[0];
    }
  }

  /** Somebody on the way: of the bytes that the client sends one is flipped, or all come twice. */
  @ParameterizedTest
  @ValueSource(strings = {"flip", "repeat"})
  void whatIsChangedOnTheWayIsNotHeard(final String how) throws Exception {
    final CompletableFuture<ProvenChannel> accepted = accepted(LIMIT);
    try (ServerSocket way = new ServerSocket(0, 8, InetAddress.getLoopbackAddress())) {
      final CompletableFuture<Void> relay = CompletableFuture.runAsync(() -> relay(way, how));
      final InetSocketAddress there = (InetSocketAddress) way.getLocalSocketAddress();
      try (ProvenChannel client = ProvenChannel.connect(there, SECRET, LIMIT);
          ProvenChannel other = accepted.get(20, TimeUnit.SECONDS)) {
        client.send(Collections.nCopies(4, "words"));
        if (how.equals("repeat")) {
          assertThat(other.receive(LIMIT)).hasSize(4);
        }
        assertThatThrownBy(() -> other.receive(LIMIT))
            .hasMessageContaining("not what the other side has sent");
      }
      relay.get(20, TimeUnit.SECONDS);
    }
  }

  private void relay(final ServerSocket way, final String how) {
    try (Socket client = way.accept();
        Socket there = new Socket(address().getAddress(), address().getPort())) {
      final CompletableFuture<Void> back =
          CompletableFuture.runAsync(() -> copy(client, there)); // Answers need not come.
      for (final int proof : new int[] {HELLO_BYTES, NONCE_BYTES}) {
        there.getOutputStream().write(client.getInputStream().readNBytes(proof));
      }
      final byte[] buffer = new byte[4096];
      final InputStream in = client.getInputStream();
      final int bytes = in.read(buffer);
      if (how.equals("flip")) {
        buffer[bytes - 1] ^= 1;
      }
      there.getOutputStream().write(buffer, 0, bytes);
      if (how.equals("repeat")) {
        there.getOutputStream().write(buffer, 0, bytes);
      }
      in.read();
      there.shutdownOutput();
      back.get(20, TimeUnit.SECONDS);
    } catch (final Exception e) {
      throw new CompletionException(e);
    }
  }

  private static void copy(final Socket client, final Socket there) {
    try {
      there.getInputStream().transferTo(client.getOutputStream());
    } catch (final IOException e) {
      return; // One of them has ended.
    }
  }
}
