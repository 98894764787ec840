package io.zerohop.device.exchange;

import io.zerohop.device.DeviceCode;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.PosixException;
import io.zerohop.device.posix.Sockets;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Sockets that processes have left behind which are gone: nobody listens on them. */
final class StaleSockets {
  private static final Logger LOG = LoggerFactory.getLogger(StaleSockets.class);

  /** What the name of a socket begins with that does not listen yet. */
  static final String HIDDEN = ".";

  private StaleSockets() {}

  /**
   * Removes the sockets of a folder on which nobody listens. In a folder in use one stays whose
   * name is claimed, or was by a process that was killed: who claims it next may put a socket of
   * its own in its place while this looks.
   *
   * @param hidden whether those without a name go too, and claims; in a folder in use they do not
   *     listen yet, or hold
   */
  static void sweep(final Path application, final boolean hidden) {
    try (DirectoryStream<Path> files = Files.newDirectoryStream(application)) {
      for (final Path file : files) {
        final boolean unnamed = file.getFileName().toString().startsWith(HIDDEN);
        if ((hidden || !unnamed && !isClaimed(file)) && isStale(file)) {
          LOG.info("removing stale socket {}", file);
          delete(file);
        } else if (hidden && unnamed && Files.isDirectory(file, LinkOption.NOFOLLOW_LINKS)) {
          delete(file); // A name that a killed process had claimed.
        }
      }
    } catch (final NoSuchFileException e) {
      LOG.debug("folder {} no longer exists", application);
    } catch (final IOException | DirectoryIteratorException e) {
      DeviceCode.SOCKETS_NOT_SWEPT
          .says("cannot remove stale sockets of another application")
          .at(application.toString())
          .warn(LOG, e);
    }
  }

  private static boolean isClaimed(final Path socket) {
    final Path claim = socket.resolveSibling(HIDDEN + socket.getFileName());
    return Files.exists(claim, LinkOption.NOFOLLOW_LINKS);
  }

  /**
   * Removes a socket of this name if nobody listens on it. Names are drawn at random or claimed, so
   * nobody else makes a socket of this one meanwhile.
   */
  static void remove(final Path socket) throws IOException {
    if (Files.exists(socket, LinkOption.NOFOLLOW_LINKS) && isStale(socket)) {
      Files.deleteIfExists(socket);
    }
  }

  /** Whether a file is a socket on which nobody listens. In doubt it is not. */
  private static boolean isStale(final Path file) {
    try {
      if (!Descriptor.statusOf(file.toString()).isSocket()) {
        return false;
      }
      Descriptor.close(Sockets.connect(file.toString()));
      return false;
    } catch (final PosixException e) {
      return e.errno() == PosixException.ECONNREFUSED;
    }
  }

  /** Whether somebody listens on a socket. In doubt not. */
  static boolean isServed(final Path socket) {
    try {
      Descriptor.close(Sockets.connect(socket.toString()));
      return true;
    } catch (final PosixException e) {
      return e.errno() == PosixException.EAGAIN;
    }
  }

  /** As {@link #remove}, but says what fails. */
  static void removeStale(final Path socket) {
    try {
      remove(socket);
    } catch (final IOException e) {
      notRemoved(socket, e);
    }
  }

  static void delete(final Path file) {
    try {
      Files.deleteIfExists(file);
    } catch (final IOException e) {
      notRemoved(file, e);
    }
  }

  private static void notRemoved(final Path file, final IOException cause) {
    DeviceCode.SOCKET_NOT_REMOVED
        .says("cannot remove a stale socket")
        .at(file.toString())
        .warn(LOG, cause);
  }
}
