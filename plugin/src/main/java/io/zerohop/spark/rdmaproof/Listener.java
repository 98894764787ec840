package io.zerohop.spark.rdmaproof;

import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Threads;
import io.zerohop.spark.rdmaproof.Proof.MemoryKind;
import io.zerohop.spark.rdmaproof.Proof.ProofException;
import io.zerohop.spark.rdmaproof.ProofLine.ProofWords;
import java.io.IOException;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * The host that waits for the other one. It accepts one connection of a side that knows the secret,
 * and starts, stops and kills workers for it. An unauthenticated peer gets a nonce and nothing
 * else, and none delays another. Used by one thread.
 */
final class Listener implements AutoCloseable {
  static final String FACTS = "facts";
  static final String START = "start";
  static final String ASK = "ask";
  static final String STOP = "stop";
  static final String RESUME = "resume";
  static final String STATE = "state";
  static final String KILL = "kill";
  static final String END = "end";

  /** Time for a peer to prove itself. */
  private static final Duration PROOF = Duration.ofSeconds(10);

  private static final int BACKLOG = 64;
  private static final int MAX_WORKERS = 4;

  private static final int MAX_UNPROVEN = 64;
  private static final int MAX_NAMED = 100;

  private final ServerSocket server;
  private final byte[] secret;
  private final int gpu;
  private final Duration limit;
  private final Clock clock;
  private final PrintWriter log;
  private final Map<String, ChildProcess> workers = new HashMap<>();

  /** Those that may still prove themselves, the oldest first. */
  private final Queue<Socket> unproven = new ConcurrentLinkedQueue<>();

  /** Addresses without a proof that the log has. */
  private final Set<String> named = ConcurrentHashMap.newKeySet();

  private final CompletableFuture<ProvenChannel> proven = new CompletableFuture<>();
  private int started;

  /**
   * Opens the port.
   *
   * @param address the own one, of the network that is trusted
   * @param port 0 for any
   * @param limit of all: waiting for the other side, and serving it
   */
  Listener(
      final InetAddress address,
      final int port,
      final byte[] secret,
      final int gpu,
      final Duration limit,
      final Clock clock,
      final PrintWriter log)
      throws IOException {
    server = new ServerSocket(port, BACKLOG, address);
    this.secret = secret.clone();
    this.gpu = gpu;
    this.limit = limit;
    this.clock = clock;
    this.log = log;
  }

  InetSocketAddress address() {
    return (InetSocketAddress) server.getLocalSocketAddress();
  }

  /**
   * Serves one proof to its end.
   *
   * @return whether the other side came
   */
  boolean serve() throws IOException {
    final long end = clock.in(limit);
    try {
      while (!proven.isDone() && !clock.isOver(end)) {
        server.setSoTimeout(millis(clock.left(end)));
        prove(server.accept());
      }
    } catch (final SocketTimeoutException e) {
      log.println("no host proved that it knows the secret within " + limit.toSeconds() + " s");
    } catch (final SocketException e) {
      if (!proven.isDone()) {
        throw e;
      }
    } finally {
      server.close();
      unproven.forEach(Listener::drop);
    }
    final ProvenChannel channel = proven.getNow(null);
    if (channel == null) {
      return false;
    }
    try (channel) {
      channel.closeIn(Duration.ofNanos(clock.left(end)));
      serve(channel, end);
    }
    return true;
  }

  private static int millis(final long nanos) {
    return (int) Math.min(Integer.MAX_VALUE, nanos / 1_000_000 + 1);
  }

  /** Beside others, so that one that says nothing holds nobody up. */
  private void prove(final Socket socket) {
    unproven.add(socket);
    if (unproven.size() > MAX_UNPROVEN) {
      drop(unproven.poll());
    }
    Threads.daemon(() -> proveBeside(socket), "proof-peer").start();
  }

  private void proveBeside(final Socket socket) {
    final String from = socket.getInetAddress().getHostAddress();
    try {
      final ProvenChannel channel = ProvenChannel.accept(socket, secret, PROOF);
      if (unproven.remove(socket) && proven.complete(channel)) {
        log.println(from + " has proved to know the secret");
        server.close(); // It is the only one, and nobody else is waited for.
      } else {
        channel.close();
      }
    } catch (final IOException e) {
      unproven.remove(socket);
      if (named.size() < MAX_NAMED && named.add(from)) {
        log.println("no proof from " + from + ": " + e.getMessage());
      }
    }
  }

  private static void drop(final Socket socket) {
    try {
      socket.close();
    } catch (final IOException e) {
      return; // It is of no use either way.
    }
  }

  private void serve(final ProvenChannel channel, final long end) {
    final Side.Own own =
        new Side.Own("", channel.localAddress().getAddress().getHostAddress(), gpu, limit, log);
    try {
      while (!clock.isOver(end)) {
        channel.send(answer(own, channel.receive(Duration.ofNanos(clock.left(end)))));
      }
    } catch (final IOException e) {
      log.println("the proof has ended: " + e.getMessage());
    } finally {
      workers.values().forEach(ChildProcess::close);
      workers.clear();
    }
  }

  private List<String> answer(final Side.Own own, final List<String> question) {
    try {
      return answer(own, question.get(0), question.subList(1, question.size()));
    } catch (final RuntimeException e) {
      return ProofWords.failed(e);
    }
  }

  private List<String> answer(final Side.Own own, final String what, final List<String> words) {
    return switch (what) {
      case FACTS -> ProofWords.ok(own.facts().words().toArray());
      case START -> start(own, MemoryKind.of(words.get(0)));
      case ASK -> ask(worker(words), words);
      case STOP -> done(worker(words)::stop);
      case RESUME -> done(worker(words)::resume);
      case STATE -> ProofWords.ok(worker(words).isStopped());
      case KILL -> done(worker(words)::kill);
      case END -> {
        worker(words).close();
        workers.remove(words.get(0));
        yield ProofWords.ok();
      }
      default -> throw new ProofException("there is no request " + what);
    };
  }

  private static List<String> done(final Runnable action) {
    action.run();
    return ProofWords.ok();
  }

  private List<String> ask(final ChildProcess worker, final List<String> words) {
    final Duration patience = Duration.ofMillis(Long.parseLong(words.get(1)));
    return worker.answer(
        patience.compareTo(limit) > 0 ? limit : patience, words.subList(2, words.size()));
  }

  private List<String> start(final Side.Own own, final MemoryKind kind) {
    if (workers.size() >= MAX_WORKERS) {
      throw new ProofException("there are " + MAX_WORKERS + " processes already");
    }
    log.println("starts a process with " + kind.key() + " memory");
    final ChildProcess worker = own.start(kind);
    final String number = Integer.toString(++started);
    workers.put(number, worker);
    return ProofWords.ok(number);
  }

  private ChildProcess worker(final List<String> words) {
    final ChildProcess worker = workers.get(words.get(0));
    if (worker == null) {
      throw new ProofException("there is no process " + words.get(0));
    }
    return worker;
  }

  @Override
  public void close() throws IOException {
    server.close();
  }
}
