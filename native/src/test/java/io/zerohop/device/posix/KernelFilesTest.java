package io.zerohop.device.posix;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class KernelFilesTest {
  @TempDir Path proc;

  @Test
  void aProcessIsStoppedOnceEachOfItsThreadsIs() throws IOException {
    assertThat(KernelFiles.isStopped(proc, 7)).as("gone").isFalse();
    thread("7", "7 (java) T 1 7");
    assertThat(KernelFiles.isStopped(proc, 7)).isTrue();
    thread("8", "8 (a) T (b) S 1 7");
    assertThat(KernelFiles.isStopped(proc, 7)).as("one sleeps").isFalse();
    thread("8", "8 (a) S (b) T 1 7");
    assertThat(KernelFiles.isStopped(proc, 7)).isTrue();
    Files.delete(proc.resolve("7/task/8/stat"));
    assertThat(KernelFiles.isStopped(proc, 7)).as("one ends").isFalse();
  }

  private void thread(final String id, final String stat) throws IOException {
    final Path folder = Files.createDirectories(proc.resolve("7/task").resolve(id));
    Files.writeString(folder.resolve("stat"), stat);
  }
}
