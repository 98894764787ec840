package io.zerohop.spark.proof;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.util.EnumSet;
import java.util.Set;

/** The secret that both sides of a proof read from a file of their own. */
final class SecretFile {
  /** With fewer characters somebody who listens could find it by trying. */
  static final int LEAST_CHARACTERS = 32;

  private static final int MOST_BYTES = 4096;

  private SecretFile() {}

  /**
   * Reads it; white space around it does not count.
   *
   * @throws IOException if the file cannot be read, other users can read or change it, or the
   *     secret is too short
   */
  static byte[] read(final Path file) throws IOException {
    final Set<PosixFilePermission> others =
        EnumSet.copyOf(
            Set.of(
                PosixFilePermission.GROUP_READ,
                PosixFilePermission.GROUP_WRITE,
                PosixFilePermission.OTHERS_READ,
                PosixFilePermission.OTHERS_WRITE));
    others.retainAll(Files.getPosixFilePermissions(file));
    if (!others.isEmpty()) {
      throw new IOException(file + " can be read or written by other users; chmod 600 " + file);
    }
    if (Files.size(file) > MOST_BYTES) {
      throw new IOException(file + " has more than " + MOST_BYTES + " bytes");
    }
    final String secret = Files.readString(file).strip();
    if (secret.length() < LEAST_CHARACTERS) {
      throw new IOException(
          file
              + " has fewer than "
              + LEAST_CHARACTERS
              + " characters; (umask 077; head -c 32 /dev/urandom | base64 > "
              + file
              + ") makes one");
    }
    return secret.getBytes(StandardCharsets.UTF_8);
  }
}
