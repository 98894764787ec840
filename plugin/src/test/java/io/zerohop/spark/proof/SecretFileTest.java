package io.zerohop.spark.proof;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
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
}
