package io.zerohop.spark.proof;

import io.zerohop.device.posix.Clock;
import java.io.IOException;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The host that waits for the other one: it takes one connection of a side that knows the secret,
 * and starts, stops and kills workers for it. A stranger gets a nonce and nothing else. Used by one
 * thread.
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

  /** To prove itself; one stranger holds the next one up so long. */
  private static final Duration PROOF = Duration.ofSeconds(10);

  private static final int BACKLOG = 64;
  private static final int MOST_WORKERS = 4;

  private final ServerSocket server;
  private final byte[] secret;
  private final int gpu;
  private final Duration limit;
  private final Clock clock;
  private final PrintWriter log;
  private final Map<String, ChildProcess> workers = new HashMap<>();
  private int started;

  /**
   * Opens the port.
   *
   * @param address the own one, of the network that is trusted
   * @param port 0 for any
   * @param gpu number of the GPU that is used
   * @param limit of all: waiting for the other side, and serving it
   * @param log gets a line for what happens
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
    while (true) {
      final long left = clock.left(end) / 1_000_000;
      if (left <= 0) {
        return false;
      }
      server.setSoTimeout((int) Math.min(Integer.MAX_VALUE, left));
      final Socket socket;
      try {
        socket = server.accept();
      } catch (final SocketTimeoutException e) {
        return false;
      }
      final ProvenChannel channel = prove(socket);
      if (channel != null) {
        server.close(); // It is the only one.
        try (channel) {
          serve(channel, end);
        }
        return true;
      }
    }
  }

  /** Returns null for a stranger. */
  private ProvenChannel prove(final Socket socket) {
    final String from = socket.getInetAddress().getHostAddress();
    try {
      final ProvenChannel channel = ProvenChannel.accept(socket, secret, PROOF);
      log.println(from + " has proved to know the secret");
      return channel;
    } catch (final IOException e) {
      log.println("a stranger at " + from + ": " + e.getMessage());
      return null;
    }
  }

  private void serve(final ProvenChannel channel, final long end) {
    final OwnSide own =
        new OwnSide("", channel.localAddress().getAddress().getHostAddress(), gpu, limit);
    try {
      while (!clock.isOver(end)) {
        final List<String> question = channel.receive(Duration.ofNanos(clock.left(end)));
        if (question.get(0).equals(START)) {
          log.println("starts a process with " + question.get(1) + " memory");
        }
        channel.send(answer(own, question));
      }
    } catch (final IOException e) {
      log.println("the proof has ended: " + e.getMessage());
    } finally {
      workers.values().forEach(ChildProcess::close);
      workers.clear();
    }
  }

  private List<String> answer(final OwnSide own, final List<String> question) {
    try {
      return answer(own, question.get(0), question.subList(1, question.size()));
    } catch (final RuntimeException e) {
      return Words.failed(e);
    }
  }

  private List<String> answer(final OwnSide own, final String what, final List<String> words) {
    switch (what) {
      case FACTS:
        return Words.ok(own.facts().words().toArray());
      case START:
        return start(own, MemoryKind.of(words.get(0)));
      case ASK:
        final Duration patience = Duration.ofMillis(Long.parseLong(words.get(1)));
        return worker(words)
            .answer(
                patience.compareTo(limit) > 0 ? limit : patience, words.subList(2, words.size()));
      case STOP:
        worker(words).stop();
        return Words.ok();
      case RESUME:
        worker(words).resume();
        return Words.ok();
      case STATE:
        return Words.ok(worker(words).isStopped());
      case KILL:
        worker(words).kill();
        return Words.ok();
      case END:
        worker(words).close();
        workers.remove(words.get(0));
        return Words.ok();
      default:
        throw new ProofException("there is no question " + what);
    }
  }

  private List<String> start(final OwnSide own, final MemoryKind kind) {
    if (workers.size() >= MOST_WORKERS) {
      throw new ProofException("there are " + MOST_WORKERS + " processes already");
    }
    final ChildProcess worker = own.start(kind);
    final String number = Integer.toString(++started);
    workers.put(number, worker);
    return Words.ok(number, worker.address(), worker.describe());
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
