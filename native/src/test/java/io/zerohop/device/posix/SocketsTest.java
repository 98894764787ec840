package io.zerohop.device.posix;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the native side does with arguments that do not fit. */
final class SocketsTest {
  private static final byte[] DATA = {1, 2, 3, 4};

  @TempDir private Path folder;

  @BeforeEach
  void needsTheLibrary() {
    NativeLibrary.require();
  }

  @Test
  void rangesBeyondTheArrayAreRefusedBeforeAByteMoves() {
    final String path = folder.resolve("socket").toString();
    final int listener = Sockets.listen(path, 1);
    final int client = Sockets.connect(path);
    final int server = Sockets.accept(listener);
    final int[][] ranges = {{0, 5}, {0, -1}, {-1, 2}, {5, 0}, {3, 2}, {1, Integer.MAX_VALUE}};
    final byte[] received = new byte[DATA.length];
    for (final int[] range : ranges) {
      assertInvalid(() -> Sockets.send(client, DATA, range[0], range[1], -1));
    }
    assertThat(Sockets.send(client, DATA, 0, DATA.length, -1)).isEqualTo(DATA.length);
    for (final int[] range : ranges) {
      assertInvalid(() -> Sockets.receive(server, received, range[0], range[1], null));
    }
    assertThat(Sockets.receive(server, received, 0, DATA.length, null)).isEqualTo(DATA.length);
    assertThat(received).isEqualTo(DATA);
    assertInvalid(() -> Sockets.poll(new int[1], new int[2], 2, 0));
    assertInvalid(() -> Sockets.poll(new int[2], new int[1], 2, 0));
    assertInvalid(() -> Sockets.poll(new int[1], new int[1], -1, 0));
    for (final int fd : new int[] {client, server, listener}) {
      Descriptor.close(fd);
    }
  }

  private static void assertInvalid(final ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(PosixException.class, e -> assertThat(e.errno()).isEqualTo(22));
  }
}
