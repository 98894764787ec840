package io.zerohop.spark.keeperdaemon;

import io.zerohop.device.Message;
import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.NativeLibrary;
import io.zerohop.device.posix.PosixException;
import io.zerohop.device.posix.Sockets;
import io.zerohop.device.posix.Threads;
import io.zerohop.spark.compat.JarVersion;
import io.zerohop.spark.doctor.ForeignCode;
import io.zerohop.spark.keeper.DaemonLink;
import io.zerohop.spark.keeper.DaemonLink.Answer;
import io.zerohop.spark.keeper.DaemonLink.Kind;
import io.zerohop.spark.keeper.KeeperLaunch;
import io.zerohop.spark.keeper.KeeperShare;
import io.zerohop.spark.log.SparkCode;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Semaphore;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Starts the keepers of one user's applications on a node, as its children, so that they outlive
 * the containers of executors. All together hold no more than one limit: each gets a share at its
 * start, a name in the daemon's folder that it claims until it ends. So the daemon holds nothing
 * that a later one does not find, and keepers go on when it ends. Thread safe; owns its folder and
 * the socket, but no keeper.
 */
final class KeeperDaemon implements AutoCloseable {
  private static final Duration REQUEST_LIMIT = Duration.ofSeconds(5);

  /** A keeper that does not read its orders is ended. */
  private static final Duration ORDERS_LIMIT = Duration.ofSeconds(30);

  private static final long STOP_MILLIS = 10_000;
  private static final int POLL_MILLIS = 500;
  private static final int BACKLOG = 64;
  private static final int MAX_REQUESTS = 16;
  private static final String SERVING = "serving";
  private static final Duration MINUTE = Duration.ofMinutes(1);

  /** Of less, no keeper is started, unless less is wanted. */
  static final long MIN_BYTES = 64L << 20;

  /**
   * The limits of a daemon.
   *
   * @param bytes that all keepers hold at most
   * @param fileBytes that all keepers have in files at most; {@link KeeperShare#UNLIMITED} for any
   * @param keepers at a time
   * @param starts within a minute
   */
  record Limits(long bytes, long fileBytes, int keepers, int starts) {}

  /**
   * The rules for class paths and sockets.
   *
   * @param jars folders in which all of a class path has to lie; any if there is none
   * @param sockets see {@link KeeperShare}
   * @param files see {@link KeeperShare}
   */
  record Rules(List<Path> jars, String sockets, String files) {}

  /** Starts a process whose standard input is piped. */
  @FunctionalInterface
  interface Starter {
    Process start(String classPath, List<String> share) throws IOException;
  }

  /** A process of this daemon's. */
  private static final class Child {
    private final Process process;
    private final String application;

    /** When it has to have read its orders; absent once it has. */
    private volatile @Nullable Deadline ordersBy;

    private Child(final Process process, final String application, final Deadline ordersBy) {
      this.process = process;
      this.application = application;
      this.ordersBy = ordersBy;
    }
  }

  private final Path base;
  private final Limits limits;
  private final Rules rules;
  private final Starter starter;
  private final Clock clock;
  private final Consumer<Message> log;
  private final SocketFolder folder;
  private final SocketFolder.Claim claim;
  private final int listener;
  private final int wakeup;
  private final Semaphore requests = new Semaphore(MAX_REQUESTS);
  private final PerMinute starts;
  private final PerMinute lines;

  /** By the names of their shares. */
  private final Map<String, Child> children = new HashMap<>();

  private @Nullable Thread server;
  private volatile boolean closed;

  private KeeperDaemon(
      final Path base,
      final Limits limits,
      final Rules rules,
      final Starter starter,
      final Clock clock,
      final Consumer<Message> log) {
    this.base = base;
    this.limits = limits;
    this.rules = rules;
    this.starter = starter;
    this.clock = clock;
    this.log = log;
    this.starts = new PerMinute(limits.starts(), clock);
    this.lines = new PerMinute(limits.starts(), clock);
    folder = SocketFolder.open(base, KeeperShare.FOLDER);
    try (Undo undo = new Undo(folder)) {
      final SocketFolder.Claim claimed = folder.claim(SERVING);
      if (claimed == null) {
        throw new ZerohopException(
            Category.FALLBACK, Message.of("another daemon serves here").at(base.toString()));
      }
      undo.add(claimed);
      claim = claimed;
      listener = folder.listen(DaemonLink.SOCKET, BACKLOG);
      wakeup = Sockets.newWakeup();
      undo.done();
    }
  }

  /**
   * Opens the folder and begins to serve.
   *
   * @param base of this user alone; made if it is not there
   * @param log gets a line for each keeper, and for requests that are refused
   * @throws ZerohopException (FALLBACK) if it is not private, or another daemon serves there
   */
  static KeeperDaemon open(
      final Path base,
      final Limits limits,
      final Rules rules,
      final Starter starter,
      final Clock clock,
      final Consumer<Message> log) {
    NativeLibrary.require();
    final KeeperDaemon daemon = new KeeperDaemon(base, limits, rules, starter, clock, log);
    try (Undo undo = new Undo(daemon)) {
      final Thread thread = Threads.daemon(daemon::serve, "zerohop-keeper-daemon");
      thread.start();
      daemon.server = thread; // From now on it releases all.
      return undo.keep(daemon);
    }
  }

  private void serve() {
    try {
      serveUntilClosed();
    } finally {
      release();
    }
  }

  private void serveUntilClosed() {
    while (!closed) {
      final int[] events = {Sockets.READABLE, Sockets.READABLE};
      Sockets.poll(new int[] {wakeup, listener}, events, 2, POLL_MILLIS);
      endIdle();
      try {
        for (int fd = Sockets.accept(listener); fd >= 0 && !closed; fd = accept()) {
          admit(fd);
        }
      } catch (final PosixException e) {
        refused(Message.of("no connection was accepted").because(e).remedy("raise 'ulimit -n'"));
        pause();
      }
    }
  }

  private int accept() {
    return closed ? -1 : Sockets.accept(listener);
  }

  /** Out of descriptors, most likely: the listener would report that again at once. */
  private void pause() {
    Sockets.poll(new int[] {wakeup}, new int[] {Sockets.READABLE}, 1, POLL_MILLIS);
  }

  /** Does not wait for the connection. */
  private void admit(final int fd) {
    if (!requests.tryAcquire()) {
      Descriptor.close(fd);
      refused(Message.of("more than " + MAX_REQUESTS + " concurrent requests"));
      return;
    }
    try (Undo undo = new Undo(requests::release, () -> Descriptor.close(fd))) {
      Threads.daemon(() -> answer(fd), "zerohop-keeper-request").start();
      undo.done();
    } catch (final ZerohopException e) {
      refused(e.message());
    }
  }

  private void answer(final int fd) {
    try (DaemonLink link = new DaemonLink(fd, Deadline.in(clock, REQUEST_LIMIT))) {
      answer(link);
    } catch (final RuntimeException e) {
      refused(Message.of(e)); // Also of what nobody has thought of: others are served.
    } finally {
      requests.release();
    }
  }

  private void answer(final DaemonLink link) {
    final DaemonLink.Start request;
    try {
      request = link.request();
    } catch (final ZerohopException e) {
      refuse(link, e.message()); // Also another version.
      return;
    }
    if (request == null) {
      link.answer(answer(Kind.STATE, ""));
      return;
    }
    final String classPath;
    try {
      classPath = new ForeignCode(Descriptor.userId()).classPath(request.classPath(), rules.jars());
    } catch (final IOException e) {
      refuse(
          link,
          Message.of("no keeper is started of this class path")
              .because(String.valueOf(e.getMessage())));
      return;
    }
    final Started started = start(request, classPath);
    try {
      link.answer(started.answer);
    } finally {
      // Also if the executor is gone: its keeper is for others, too.
      if (started.child != null) {
        order(started.child, request.orders());
      }
      Arrays.fill(request.orders(), (byte) 0);
    }
  }

  private void refuse(final DaemonLink link, final Message why) {
    refused(why);
    link.answer(answer(Kind.REFUSED, why.text()));
  }

  /** The outcome of a request; with the process if there is a new one. */
  private record Started(Answer answer, @Nullable Child child) {}

  private synchronized Started start(final DaemonLink.Start request, final String classPath) {
    final String application = Arrays.toString(request.application());
    final Map<String, Long> shares;
    try {
      shares = shares();
    } catch (final ZerohopException e) {
      final Message why = unknown(e);
      refused(why);
      return new Started(answer(Kind.FULL, why.text()), null);
    }
    if (children.values().stream().anyMatch(child -> child.application.equals(application))) {
      return new Started(answer(Kind.RUNNING, "it runs already"), null);
    }
    final long left = left(shares);
    final long bytes = request.bytes() < 0 ? left / 2 : Math.min(request.bytes(), left);
    if (shares.size() >= limits.keepers()) {
      return full("it has " + shares.size() + " keepers, as many as --keepers allows");
    } else if (bytes < MIN_BYTES && (request.bytes() < 0 || bytes < request.bytes())) {
      return full(left + " of " + limits.bytes() + " bytes are left of --size");
    } else if (!starts.take()) {
      return full("it has started " + limits.starts() + " keepers within a minute (--starts)");
    }
    final long fileBytes = fileShare(request.fileBytes(), shares.keySet());
    final String name = KeeperShare.newName(bytes, fileBytes);
    try {
      folder.offer(name);
      final Process process =
          starter.start(
              classPath, new KeeperShare(base, name, rules.sockets(), rules.files()).arguments());
      final Child child = new Child(process, application, Deadline.in(clock, ORDERS_LIMIT));
      children.put(name, child);
      final String text =
          "process "
              + process.pid()
              + ", at most "
              + bytes
              + " bytes"
              + (limits.fileBytes() == KeeperShare.UNLIMITED ? "" : ", " + fileBytes + " of files");
      log.accept(Message.of("started a keeper: " + text));
      return new Started(answer(Kind.STARTED, text), child);
    } catch (final IOException | ZerohopException e) {
      withdraw(name);
      return new Started(answer(Kind.REFUSED, "the daemon cannot start it: " + e), null);
    }
  }

  /** What is said where the daemon does not know how much its keepers hold. */
  private static Message unknown(final ZerohopException why) {
    return Message.of("the shares of the daemon's keepers are not known")
        .because(why)
        .remedy("raise 'ulimit -n' of the daemon, or start it again if its folder was removed");
  }

  private Started full(final String why) {
    refused(Message.of("a limit is reached").because(why));
    return new Started(answer(Kind.FULL, why), null);
  }

  /** Hands over what has to stay secret. May wait for the process, which is ended after a limit. */
  private void order(final Child child, final byte[] orders) {
    try (OutputStream out = child.process.getOutputStream()) {
      out.write(orders);
    } catch (final IOException e) {
      refused(Message.of("a keeper has not read its orders").because(e));
    } finally {
      child.ordersBy = null;
    }
  }

  private synchronized void endIdle() {
    for (final Child child : children.values()) {
      final Deadline by = child.ordersBy;
      if (by != null && by.isOver()) {
        child.process.destroyForcibly();
      }
    }
  }

  /**
   * Bytes of the shares that are held, by this daemon's keepers or an earlier one's.
   *
   * @throws ZerohopException (FALLBACK) if it cannot tell
   */
  private Map<String, Long> shares() {
    children.values().removeIf(child -> !child.process.isAlive());
    final Map<String, Long> shares = new HashMap<>();
    for (final String name : folder.claims()) {
      final long bytes = KeeperShare.bytes(name);
      if (bytes >= 0 && (children.containsKey(name) || !withdraw(name))) {
        shares.put(name, bytes);
      }
    }
    return shares;
  }

  /** Takes a share back that no process holds. */
  private boolean withdraw(final String name) {
    final SocketFolder.Claim unused = folder.claimOffered(name);
    if (unused == null) {
      return false;
    }
    unused.close();
    return true;
  }

  private long left(final Map<String, Long> shares) {
    long left = limits.bytes();
    for (final long bytes : shares.values()) {
      left -= Math.min(bytes, left);
    }
    return left;
  }

  /** As much as is wanted, if so much is left; half of that if nothing is said. */
  private long fileShare(final long wanted, final Set<String> shares) {
    long left = rules.files().isEmpty() ? 0 : limits.fileBytes();
    if (left == KeeperShare.UNLIMITED) {
      return left;
    }
    for (final String name : shares) {
      left -= Math.min(KeeperShare.fileBytes(name), left);
    }
    return wanted < 0 ? left / 2 : Math.min(wanted, left);
  }

  private synchronized Answer answer(final Kind kind, final String text) {
    long left = 0;
    int keepers = children.size();
    String said = text;
    try {
      final Map<String, Long> shares = shares();
      left = left(shares);
      keepers = shares.size();
    } catch (final ZerohopException e) {
      said = text.isEmpty() ? unknown(e).text() : text;
    }
    return new Answer(
        kind, JarVersion.own(), limits.bytes(), left, keepers, limits.keepers(), said);
  }

  private void refused(final Message why) {
    if (lines.take()) {
      log.accept(
          SparkCode.KEEPER_REQUEST_REFUSED.says("a request for a keeper was refused").because(why));
    }
  }

  /** Waits until it does not serve any more, and has released all: it is closed, or has failed. */
  void awaitEnd() throws InterruptedException {
    final Thread thread = server;
    if (thread != null) {
      thread.join();
    }
  }

  /**
   * Ends to serve, and waits for that; keepers go on. Idempotent. Loads no class: whoever waits for
   * the end may close the loader of all before a process that ends comes to it.
   */
  @Override
  public void close() {
    synchronized (this) {
      if (!closed) {
        closed = true;
        Sockets.wakeup(wakeup);
      }
    }
    final Thread thread = server;
    if (thread == null) {
      release();
      return;
    }
    try {
      thread.join(STOP_MILLIS);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** By the thread that serves, once it does not any more. */
  private void release() {
    synchronized (this) {
      closed = true;
      folder.unlink(DaemonLink.SOCKET);
      Descriptor.close(listener);
      Descriptor.close(wakeup);
    }
    claim.close();
    folder.close();
  }

  /** So many within any minute. Thread safe. */
  private static final class PerMinute {
    private final long[] ends;
    private final Clock clock;
    private int next;
    private int taken;

    PerMinute(final int most, final Clock clock) {
      this.ends = new long[most];
      this.clock = clock;
    }

    synchronized boolean take() {
      if (taken == ends.length && !clock.isOver(ends[next])) {
        return false;
      }
      taken = Math.min(taken + 1, ends.length);
      ends[next] = clock.in(MINUTE);
      next = (next + 1) % ends.length;
      return true;
    }
  }

  /** Starts keepers whose log goes where this process's does. */
  static Process launch(final String classPath, final List<String> share) throws IOException {
    return KeeperLaunch.process(classPath, share)
        .redirectOutput(ProcessBuilder.Redirect.INHERIT)
        .start();
  }
}
