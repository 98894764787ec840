package io.zerohop.shuffle.transport.samenode;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.transport.samenode.SharedMemory.SocketWatch;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A socket file that somebody else removed or replaced. */
class SocketWatchTest {
  @TempDir private java.nio.file.Path base;

  @Test
  void aSocketThatVanishedIsReportedOnce() throws IOException {
    final java.nio.file.Path socket = Files.createFile(base.resolve("socket"));
    final SocketWatch watch = new SocketWatch(socket);
    assertThat(watch.isGone()).isFalse();
    Files.delete(socket);
    assertThat(watch.isGone()).isTrue();
    assertThat(watch.report()).isTrue();
    assertThat(watch.report()).isFalse();
  }

  @Test
  void aSocketThatWasReplacedIsGone() throws IOException {
    final java.nio.file.Path socket = Files.createFile(base.resolve("socket"));
    final SocketWatch watch = new SocketWatch(socket);
    final java.nio.file.Path other = Files.createFile(base.resolve("other"));
    assertThat(watch.isGone()).isFalse();
    Files.move(other, socket, StandardCopyOption.REPLACE_EXISTING);
    assertThat(watch.isGone()).isTrue();
  }
}
