package io.zerohop.device.exchange;

import io.zerohop.device.DeviceCode;
import io.zerohop.device.posix.Sockets;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The identity of a process, as the kernel gives it. Each side of a connection states its own under
 * its proof, and compares the other's with what the kernel says of the socket: a process in between
 * that passes the proofs on is itself at the other end, and does not match.
 *
 * <p>A pidfd's inode (from Linux 6.9 on) names a process for as long as the system runs, in every
 * PID namespace. Before, a pid with its start time does so within one namespace. What is not known
 * is 0.
 *
 * @param namespace inode of the PID namespace
 * @param pid as seen in that namespace
 * @param start in clock ticks since the system's start, field 22 of /proc/PID/stat
 * @param pidfd inode of the process's pidfd
 */
record ProcessIdentity(long namespace, long pid, long start, long pidfd) {
  static final int BYTES = 32;

  private static final Logger LOG = LoggerFactory.getLogger(ProcessIdentity.class);
  private static final AtomicBoolean WARNED = new AtomicBoolean();

  /** What no process states. */
  private static final long NOBODY = -1;

  private static final int STATE_AFTER_NAME = 1;
  private static final int START_AFTER_NAME = 20;

  /** States of a process that runs no more: a zombie, and one that is being removed. */
  private static final Set<String> ENDED = Set.of("Z", "X", "x");

  /** A check that the process at the other end is the one that it claims to be. */
  enum Match {
    /** The kernel says the same. */
    SAME,

    /** The kernel names another process, which passes on what this one says. */
    OTHER,

    /** The kernel does not tell: another PID namespace, and no inodes of pidfds. */
    UNKNOWN
  }

  private static final class Self {
    private static final ProcessIdentity IDENTITY = read();

    private static ProcessIdentity read() {
      final long pid = ProcessHandle.current().pid();
      return new ProcessIdentity(
          namespaceOfSelf(), pid, procShows(pid) ? startOf(pid) : 0, Sockets.ownProcess());
    }

    private static long namespaceOfSelf() {
      try {
        return (Long) Files.getAttribute(Path.of("/proc/self/ns/pid"), "unix:ino");
      } catch (final IOException | UnsupportedOperationException | IllegalArgumentException e) {
        LOG.debug("the PID namespace of this process is not known", e);
        return 0;
      }
    }

    /** Whether /proc counts as this process does; it may be that of another PID namespace. */
    private static boolean procShows(final long pid) {
      try {
        return Files.readSymbolicLink(Path.of("/proc/self")).toString().equals("" + pid);
      } catch (final IOException | UnsupportedOperationException e) {
        LOG.debug("/proc does not show this process", e);
        return false;
      }
    }
  }

  /** Returns that of this process, read once. */
  static ProcessIdentity self() {
    return Self.IDENTITY;
  }

  /**
   * Returns what the kernel says of a socket's other end: who connected, or who listened. It is
   * read as soon as there is a connection, before the pid could be given to another process.
   */
  static ProcessIdentity ofPeer(final int socket) {
    final ProcessIdentity self = self();
    final long pid = Sockets.peer(socket) & 0xFFFFFFFFL;
    final long pidfd = self.pidfd == 0 ? 0 : Sockets.peerProcess(socket);
    return new ProcessIdentity(
        self.namespace,
        pid,
        self.start == 0 ? 0 : known(startOf(pid)),
        self.pidfd == 0 ? 0 : known(pidfd));
  }

  private static long known(final long value) {
    return value == 0 ? NOBODY : value;
  }

  /** Returns the start time of a process; 0 if it is unknown or has ended, as a zombie has. */
  static long startOf(final long pid) {
    try {
      return readStart(pid);
    } catch (final IOException | NumberFormatException e) {
      LOG.debug("process {} has no start time here", pid, e);
      return 0;
    }
  }

  /** Whether a process has ended that had a start time. One that cannot be looked at has not. */
  static boolean isGone(final long pid, final long start) {
    try {
      return readStart(pid) != start;
    } catch (final IOException | NumberFormatException e) {
      LOG.debug("process {} cannot be looked at", pid, e);
      return Files.notExists(Path.of("/proc/" + pid));
    }
  }

  private static long readStart(final long pid) throws IOException {
    final byte[] stat = Files.readAllBytes(Path.of("/proc/" + pid + "/stat"));
    final String text = new String(stat, StandardCharsets.ISO_8859_1);
    // The name, in brackets, may have blanks and brackets of its own.
    final String[] words = text.substring(text.lastIndexOf(')') + 1).split(" ");
    final boolean lives =
        words.length > START_AFTER_NAME && !ENDED.contains(words[STATE_AFTER_NAME]);
    return lives ? Long.parseLong(words[START_AFTER_NAME]) : 0;
  }

  /**
   * Compares what a peer states of itself, this, with what the kernel says of it.
   *
   * @param seen by {@link #ofPeer}
   */
  Match match(final ProcessIdentity seen) {
    if (pidfd != 0 && seen.pidfd != 0) {
      return pidfd == seen.pidfd ? Match.SAME : Match.OTHER;
    }
    if (namespace != 0 && namespace == seen.namespace) {
      final boolean sameStart = start == 0 || seen.start == 0 || start == seen.start;
      return pid == seen.pid && sameStart ? Match.SAME : Match.OTHER;
    }
    return Match.UNKNOWN;
  }

  /** Warns, once for all peers, that a peer has proved itself whose {@link #match} is unknown. */
  static void warnOfUnknown() {
    if (WARNED.compareAndSet(false, true)) {
      DeviceCode.PEER_UNCONFIRMED
          .says(
              "the kernel does not tell which process serves a socket, so a process of the same"
                  + " user could relay the connection (logged once)")
          .because("the peer is in another PID namespace, and the kernel is older than Linux 6.9")
          .remedy(
              "use Linux 6.9 or later, or set spark.zerohop.socket.dir to a folder of this"
                  + " application's own")
          .warn(LOG);
    }
  }

  /** Writes 32 bytes, big endian. */
  void put(final ByteBuffer to) {
    to.putLong(namespace).putLong(pid).putLong(start).putLong(pidfd);
  }

  static ProcessIdentity get(final ByteBuffer from) {
    return new ProcessIdentity(from.getLong(), from.getLong(), from.getLong(), from.getLong());
  }
}
