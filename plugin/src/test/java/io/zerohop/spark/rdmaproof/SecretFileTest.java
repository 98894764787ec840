package io.zerohop.spark.rdmaproof;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.spark.doctor.ForeignCode;
import io.zerohop.spark.rdmaproof.ProofCommand.SecretFile;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A secret is long, and its user's alone. */
class SecretFileTest {
  @TempDir private Path folder;

  private Path file(final String text, final String mode) throws IOException {
    final Path file = folder.resolve("secret");
    Files.writeString(file, text);
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(mode));
    return file;
  }

  @Test
  void whiteSpaceAroundItDoesNotCount() throws IOException {
    assertThat(SecretFile.read(file(" " + "x".repeat(32) + "\n", "rw-------")))
        .isEqualTo("x".repeat(32).getBytes(StandardCharsets.UTF_8));
  }

  @ParameterizedTest
  @ValueSource(strings = {"rw-r-----", "rw--w----", "rw----r--", "rw-----w-"})
  void othersMayNeitherReadNorChangeIt(final String mode) throws IOException {
    final Path file = file("x".repeat(32), mode);
    assertThatThrownBy(() -> SecretFile.read(file)).hasMessageContaining("chmod 600");
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 31, 5000})
  void itIsNeitherShortNorEndless(final int characters) throws IOException {
    final Path file = file("x".repeat(characters), "rw-------");
    assertThatThrownBy(() -> SecretFile.read(file)).isInstanceOf(IOException.class);
  }

  /** Who owns it knows it, whatever its mode. */
  @Test
  void itIsTheOwnUsers() throws IOException {
    final Path file = file("x".repeat(32), "rw-------");
    if ((int) Files.getAttribute(file, "unix:uid") == 0) {
      Files.setAttribute(file, "unix:uid", 61_531);
    }
    assertThatThrownBy(() -> SecretFile.read(file, new ForeignCode(61_532)))
        .hasMessageContaining("belongs to user");
  }

  /** Who can replace it knows what it is replaced by. */
  @Test
  void itsFolderIsNobodyElses() throws IOException {
    final Path file = file("x".repeat(32), "rw-------");
    Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxrwxrwx"));
    assertThatThrownBy(() -> SecretFile.read(file))
        .hasMessageContaining(folder + " can be written by others");
  }

  /** Nobody writes into the pipe, and a device does not end. */
  @Test
  @Timeout(20)
  void itIsAFile() throws Exception {
    final Path pipe = folder.resolve("pipe");
    new ProcessBuilder("mkfifo", "-m", "600", pipe.toString()).start().waitFor();
    assertThatThrownBy(() -> SecretFile.read(pipe)).hasMessageContaining("not a file");
  }
}
