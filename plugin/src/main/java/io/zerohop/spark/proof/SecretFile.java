package io.zerohop.spark.proof;

import io.zerohop.spark.doctor.ForeignCode;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** The secret that both sides of a proof read from a file of their own. */
final class SecretFile {
  private static final int MIN_CHARACTERS = 32;
  private static final int MAX_BYTES = 4096;
  private static final int OTHERS = 0077;

  private SecretFile() {}

  /** Reads the secret as the user of this process. */
  static byte[] read(final Path file) throws IOException {
    return read(file, new ForeignCode());
  }

  /**
   * Reads the secret, without the white space around it.
   *
   * @param ownership tells who else can change the file, or replace it
   * @throws IOException if this is no regular file, other users can read or change it, or the
   *     secret is too short
   */
  static byte[] read(final Path file, final ForeignCode ownership) throws IOException {
    if (!Files.isRegularFile(file)) {
      throw new IOException(file + " is not a file");
    }
    if (((int) Files.getAttribute(file, "unix:mode") & OTHERS) != 0) {
      throw new IOException(file + " can be read or written by other users; chmod 600 " + file);
    }
    final String changeable = ownership.changeable(file);
    if (changeable != null) {
      throw new IOException(changeable + ": others may know the secret; use a file of your own");
    }
    final byte[] bytes;
    try (InputStream in = Files.newInputStream(file)) {
      bytes = in.readNBytes(MAX_BYTES + 1);
    }
    if (bytes.length > MAX_BYTES) {
      throw new IOException(file + " has more than " + MAX_BYTES + " bytes");
    }
    final String secret = new String(bytes, StandardCharsets.UTF_8).strip();
    if (secret.length() < MIN_CHARACTERS) {
      throw new IOException(
          file
              + " has fewer than "
              + MIN_CHARACTERS
              + " characters; (umask 077; head -c 32 /dev/urandom | base64 > "
              + file
              + ") makes one");
    }
    return secret.getBytes(StandardCharsets.UTF_8);
  }
}
