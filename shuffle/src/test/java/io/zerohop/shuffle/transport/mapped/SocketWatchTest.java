package io.zerohop.shuffle.transport.mapped;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A socket file that somebody else removed. */
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
}
