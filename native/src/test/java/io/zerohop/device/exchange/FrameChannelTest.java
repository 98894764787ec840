package io.zerohop.device.exchange;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.Memory;
import io.zerohop.device.posix.NativeLibrary;
import io.zerohop.device.posix.Sockets;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FrameChannelTest {
  private static final Duration LIMIT = Duration.ofSeconds(30);
  private static final String NAME = "passed-unasked";

  @TempDir private Path folder;

  @Test
  void aDescriptorThatCameBeforeTheEndIsClosed() throws IOException {
    NativeLibrary.require();
    final Path socket = folder.resolve("peer");
    final int listener = Sockets.listen(socket.toString(), 1);
    final int fd = Sockets.connect(socket.toString());
    try {
      try (RawSocket peer = RawSocket.accept(listener)) {
        final int passed = Memory.create(NAME);
        peer.send(new Frame(Frame.Type.ANSWER, new byte[Frame.PROOF_BYTES]), passed);
        Descriptor.close(passed);
      }
      final FrameChannel channel = new FrameChannel(fd, "peer");
      final Frame frame = new Frame(Frame.Type.ANSWER, new byte[Frame.PROOF_BYTES]);
      final ExchangeException failure =
          catchThrowableOfType(
              ExchangeException.class, () -> channel.send(frame, Deadline.in(LIMIT)));
      assertThat(failure.reason()).isEqualTo(Reason.CLOSED);
      assertThat(openDescriptors()).noneMatch(target -> target.contains(NAME));
    } finally {
      Descriptor.close(fd);
      Descriptor.close(listener);
    }
  }

  private static List<String> openDescriptors() throws IOException {
    try (Stream<Path> all = Files.list(Path.of("/proc/self/fd"))) {
      return all.map(FrameChannelTest::target).toList();
    }
  }

  private static String target(final Path descriptor) {
    try {
      return Files.readSymbolicLink(descriptor).toString();
    } catch (final IOException goneMeanwhile) {
      return "";
    }
  }
}
