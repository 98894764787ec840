package io.zerohop.device.posix;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The library as such: it leaves no file, and tells failures and structures as C sees them. */
final class NativeLibraryTest {
  @TempDir Path scratch;

  @BeforeEach
  void load() {
    NativeLibrary.require();
  }

  @Test
  void theLoadedFileIsGone() throws IOException {
    try (Stream<String> maps = Files.lines(Path.of("/proc/self/maps"))) {
      final List<String> loaded = maps.filter(line -> line.contains("libzerohop.so")).toList();
      assertThat(loaded).isNotEmpty().allMatch(line -> line.endsWith("(deleted)"));
    }
  }

  @Test
  void failuresNameTheCallAndTheReason() {
    assertThatThrownBy(() -> Descriptor.close(-1))
        .isInstanceOfSatisfying(
            PosixException.class,
            e -> {
              assertThat(e.call()).isEqualTo("close");
              assertThat(e.errno()).isEqualTo(9);
            })
        .hasMessage("close: Bad file descriptor (errno 9)");
    assertThatThrownBy(() -> Sockets.listen("x".repeat(200), 1)).hasMessageContaining("too long");
    assertThatThrownBy(() -> Sockets.poll(new int[1], new int[1], 2, 0))
        .isInstanceOf(PosixException.class)
        .hasMessage("poll: Invalid argument (errno 22)");
  }

  @Test
  void statusIsWhatTheFileSystemSays() throws IOException {
    final Path file = Files.write(scratch.resolve("file"), new byte[123]);
    final Map<String, Object> expected = Files.readAttributes(file, "unix:*");
    final FileStatus status = Descriptor.statusOf(file.toString());
    assertThat(status.device()).isEqualTo(expected.get("dev"));
    assertThat(status.inode()).isEqualTo(expected.get("ino"));
    assertThat(status.userId()).isEqualTo(((Integer) expected.get("uid")).longValue());
    assertThat(status.mode()).isEqualTo(((Integer) expected.get("mode")).longValue());
    assertThat(status.bytes()).isEqualTo(123);
    assertThat(status.isRegular()).isTrue();
    assertThat(status.isSocket()).isFalse();
  }

  @Test
  void renameNeverReplaces() throws IOException {
    final Path from = Files.createFile(scratch.resolve("from"));
    final Path to = Files.createFile(scratch.resolve("to"));
    assertThatThrownBy(() -> Descriptor.rename(from.toString(), to.toString()))
        .isInstanceOfSatisfying(
            PosixException.class, e -> assertThat(e.errno()).isEqualTo(PosixException.EEXIST));
    Files.delete(to);
    Descriptor.rename(from.toString(), to.toString());
    assertThat(from).doesNotExist();
    assertThat(to).exists();
  }

  @Test
  void locksExcludeWithinOneProcessToo() {
    final int one = Descriptor.openFolder(scratch.toString());
    final int two = Descriptor.openFolder(scratch.toString());
    assertThat(Descriptor.tryLock(one, true)).isTrue();
    assertThat(Descriptor.tryLock(two, true)).isTrue();
    assertThat(Descriptor.tryLock(two, false)).isFalse();
    Descriptor.close(one);
    assertThat(Descriptor.tryLock(two, false)).isTrue();
    Descriptor.close(two);
  }
}
