package io.zerohop.device.exchange;

import io.zerohop.device.DeviceCode;
import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.FileStatus;
import io.zerohop.device.posix.PosixException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import javax.crypto.SecretKeyFactory;
import javax.crypto.spec.PBEKeySpec;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds or makes the base of an application's {@link SocketFolder} in a folder of all users, such
 * as {@code /tmp}. Its name is derived from the application's secret: nobody else can know it, and
 * make it first, and all processes of the application arrive at the same one.
 */
final class SharedPlaces {
  private static final Logger LOG = LoggerFactory.getLogger(SharedPlaces.class);

  /** Where a folder is looked for, in this order. Both outlive a user's sessions. */
  private static final List<Path> DEFAULT = List.of(Path.of("/tmp"), Path.of("/dev/shm"));

  /** How many names an application has, should neighbours take those that they have seen. */
  private static final int NAMES = 8;

  private static final int NAME_BYTES = 8;

  /**
   * The names are visible to everybody, and so must not help to guess a secret that is a password:
   * each guess takes some milliseconds.
   */
  private static final int NAME_ITERATIONS = 20_000;

  private SharedPlaces() {}

  /**
   * Returns the places to look in, none if the base is not to be looked for.
   *
   * @param given the base, or a place; absent for the default places
   */
  static List<Path> of(final @Nullable Path given) {
    if (given == null) {
      return DEFAULT;
    }
    final FileStatus status = statusOf(given);
    return status != null && status.isShared() ? List.of(given) : List.of();
  }

  /**
   * Looks for the application's base in all places first, and makes it where there is none.
   *
   * @throws ZerohopException (FALLBACK) if no place can be used
   */
  static SocketFolder find(final List<Path> places, final String application, final byte[] secret) {
    final List<String> names = names(application, secret);
    for (final Path place : places) {
      for (final String name : names) {
        if (isOwnFolder(place.resolve(name))) {
          return SocketFolder.open(place, place.resolve(name), application);
        }
      }
    }
    final List<String> why = new ArrayList<>();
    for (final Path place : places) {
      final FileStatus status = statusOf(place);
      if (status == null || !status.isShared() || !isTrusted(status)) {
        why.add(place + " is not a folder of root's that all users share, with the sticky bit");
        continue;
      }
      try {
        return make(place, names, application);
      } catch (final ZerohopException e) {
        why.add(e.message().happened());
      }
    }
    throw new ZerohopException(
        Category.FALLBACK,
        Message.of("there is no place for a socket folder")
            .because(String.join(", ", why))
            .remedy("set spark.zerohop.socket.dir to a folder of your own"));
  }

  /** Makes the first base that no other user has taken. */
  private static SocketFolder make(
      final Path place, final List<String> names, final String application) {
    ZerohopException failure = null;
    for (final String name : names) {
      final Path base = place.resolve(name);
      try {
        return SocketFolder.open(place, base, application);
      } catch (final ZerohopException e) {
        final FileStatus status = statusOf(base);
        if (status == null || status.userId() == Descriptor.userId()) {
          throw e;
        }
        failure = e;
        DeviceCode.FOLDER_TAKEN
            .says("another user owns a socket folder of this application; using the next name")
            .at(base + ", user " + status.userId())
            .warn(LOG);
      }
    }
    throw failure;
  }

  /** The names of an application's bases. */
  static List<String> names(final String application, final byte[] secret) {
    final String prefix = prefix();
    final List<String> names = new ArrayList<>();
    final byte[] salt = ("zerohop-socket-folder " + application).getBytes(StandardCharsets.UTF_8);
    final char[] password = HexFormat.of().formatHex(secret).toCharArray();
    try {
      final byte[] key =
          SecretKeyFactory.getInstance("PBKDF2WithHmacSHA256")
              .generateSecret(
                  new PBEKeySpec(password, salt, NAME_ITERATIONS, NAMES * NAME_BYTES * Byte.SIZE))
              .getEncoded();
      for (int i = 0; i < NAMES; i++) {
        names.add(prefix + HexFormat.of().formatHex(key, i * NAME_BYTES, (i + 1) * NAME_BYTES));
      }
      return names;
    } catch (final GeneralSecurityException e) {
      throw new ZerohopException(
          Category.FALLBACK, Message.of("cannot name a socket folder").because(e), e);
    }
  }

  /** The bases of all applications of this user in a place; empty if it cannot be read. */
  static List<Path> ownBases(final Path place) {
    final List<Path> own = new ArrayList<>();
    try (DirectoryStream<Path> bases = Files.newDirectoryStream(place, prefix() + "*")) {
      for (final Path base : bases) {
        if (isOwnFolder(base)) {
          own.add(base);
        }
      }
    } catch (final IOException | DirectoryIteratorException e) {
      LOG.debug("cannot look for what others have left in {}", place, e);
    }
    return own;
  }

  private static String prefix() {
    return "zerohop-" + Integer.toUnsignedString(Descriptor.userId()) + "-";
  }

  private static boolean isOwnFolder(final Path path) {
    final FileStatus status = statusOf(path);
    return status != null && status.isFolder() && status.userId() == Descriptor.userId();
  }

  /** The owner of a place can remove what lies in it. */
  private static boolean isTrusted(final FileStatus place) {
    return place.userId() == 0 || place.userId() == Descriptor.userId();
  }

  private static @Nullable FileStatus statusOf(final Path path) {
    try {
      return Descriptor.statusOf(path.toString());
    } catch (final PosixException e) {
      return null;
    }
  }
}
