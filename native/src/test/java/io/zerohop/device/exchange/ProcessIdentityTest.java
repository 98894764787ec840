package io.zerohop.device.exchange;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Which processes live. */
@Timeout(60)
class ProcessIdentityTest {
  @Test
  void aZombieIsNotLiving() throws Exception {
    // Its parent becomes a program that never asks for its end.
    final Process parent =
        new ProcessBuilder("sh", "-c", "sleep 0 & echo $!; exec sleep 60").start();
    try (BufferedReader words = parent.inputReader(StandardCharsets.US_ASCII)) {
      final long zombie = Long.parseLong(words.readLine());
      while (ProcessIdentity.startOf(zombie) != 0) {
        Thread.sleep(2);
      }
      assertThat(Files.readString(Path.of("/proc/" + zombie + "/stat"))).contains(") Z ");
      assertThat(ProcessIdentity.startOf(parent.pid())).isPositive();
    } finally {
      parent.destroyForcibly();
      parent.waitFor();
    }
    assertThat(ProcessIdentity.startOf(parent.pid())).isZero();
  }
}
