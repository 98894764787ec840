package io.zerohop.spark.rdmaproof;

import io.zerohop.device.Undo;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.KernelFiles;
import io.zerohop.device.posix.Threads;
import io.zerohop.spark.rdmaproof.Proof.MemoryKind;
import io.zerohop.spark.rdmaproof.Proof.ProofException;
import io.zerohop.spark.rdmaproof.ProofLine.ProofWords;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * A {@link GetWorker} as a process of this host. It knows no secret. It ends with this process:
 * when its standard input ends, by a hook, or, should it be stopped while this process is killed,
 * by {@code timeout}, which is its parent.
 */
final class ChildProcess implements Side.Worker {
  private static final Duration START = Duration.ofSeconds(60);
  private static final Duration SIGNAL = Duration.ofSeconds(10);
  private static final int MAX_SAID = 20;
  private static final int MAX_PRINTED = 10_000;
  private static final String ENDED = "\0";

  /** Those that are alive, for the hook. */
  private static final Set<ChildProcess> ALIVE = ConcurrentHashMap.newKeySet();

  static {
    Runtime.getRuntime().addShutdownHook(new Thread(ChildProcess::killAll, "proof-end"));
  }

  private final Process process;
  private final PrintWriter log;
  private final LinkedBlockingQueue<String> answers = new LinkedBlockingQueue<>();

  /** The first lines of its standard error that say why it ended. */
  private final List<String> said = new ArrayList<>();

  private int printed;

  /**
   * Owns the process, and reads what it prints.
   *
   * @param log gets it, but for answers
   */
  ChildProcess(final Process process, final PrintWriter log) {
    this.process = process;
    this.log = log;
    ALIVE.add(this);
    try (Undo undo = new Undo(this)) {
      Threads.daemon(
              () -> {
                lines(process.getInputStream(), this::printed);
                answers.add(ENDED);
              },
              "proof-answers")
          .start();
      Threads.daemon(() -> lines(process.getErrorStream(), this::complained), "proof-errors")
          .start();
      undo.done();
    }
  }

  private static void killAll() {
    ALIVE.forEach(ChildProcess::kill);
  }

  /**
   * Starts one, and UCX in it.
   *
   * @throws ProofException if it does not start
   */
  static ChildProcess start(final MemoryKind kind, final Side.Own side) {
    final List<String> command =
        new ArrayList<>(List.of("timeout", "-s", "KILL", Long.toString(side.life().toSeconds())));
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    command.addAll(List.of("-XX:-UsePerfData", "-XX:+ErrorFileToStderr"));
    command.addAll(List.of("-cp", System.getProperty("java.class.path")));
    command.addAll(List.of("io.zerohop.spark.Main", ProofCommand.NAME, ProofCommand.WORKER));
    final ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().putIfAbsent("UCX_LOG_FILE", "stderr");
    final ChildProcess child;
    try {
      child = new ChildProcess(builder.start(), side.log());
    } catch (final IOException e) {
      throw new ProofException("a process cannot be started: " + e.getMessage(), e);
    }
    try (Undo undo = new Undo(child)) {
      child.ask(START, "open", kind.key(), Integer.toString(side.gpu()), side.host());
      return undo.keep(child);
    }
  }

  /** Hands out the lines of a stream, until its process ends. */
  static void lines(final InputStream from, final Consumer<String> taker) {
    try (BufferedReader in =
        new BufferedReader(new InputStreamReader(from, StandardCharsets.UTF_8))) {
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        taker.accept(line);
      }
    } catch (final IOException e) {
      return; // Its end is seen by who asks.
    }
  }

  private void printed(final String line) {
    if (line.startsWith(GetWorker.MARK)) {
      answers.add(line.substring(GetWorker.MARK.length()));
    } else {
      complained(line);
    }
  }

  private void complained(final String line) {
    synchronized (said) {
      if (said.size() < MAX_SAID && !line.isBlank()) {
        said.add(line);
      }
      if (printed++ < MAX_PRINTED) {
        log.println("worker: " + ProofWords.plain(line));
        log.flush();
      }
    }
  }

  @Override
  public List<String> ask(final Duration limit, final String... words) {
    return ProofWords.said(answer(limit, List.of(words)));
  }

  /** The answer, good or bad. */
  List<String> answer(final Duration limit, final List<String> question) {
    try {
      process
          .getOutputStream()
          .write((ProofWords.join(question) + "\n").getBytes(StandardCharsets.UTF_8));
      process.getOutputStream().flush();
      final String answer = answers.poll(limit.toMillis(), TimeUnit.MILLISECONDS);
      if (answer == null) {
        kill(); // An answer that comes later would be taken for another one's.
        throw new ProofException(
            "no answer to '" + question.get(0) + "' within " + limit.toSeconds() + " s");
      }
      if (answer.equals(ENDED)) {
        throw new ProofException("the process has ended" + why());
      }
      return ProofWords.split(answer);
    } catch (final IOException e) {
      throw new ProofException("the process has ended" + why(), e);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new ProofException("interrupted", e);
    }
  }

  private String why() {
    final Deadline end = Deadline.in(SIGNAL);
    end.await(() -> !process.isAlive(), millis -> process.waitFor(millis, TimeUnit.MILLISECONDS));
    synchronized (said) {
      return (process.isAlive() ? "" : " with exit status " + process.exitValue())
          + (said.isEmpty() ? "" : ": " + String.join(" | ", said));
    }
  }

  @Override
  public void stop() {
    signal("STOP");
    final Deadline end = Deadline.in(SIGNAL);
    end.await(this::isStopped, millis -> Clock.system().sleep(Duration.ofMillis(1)));
    if (!isStopped()) {
      throw new ProofException("the process cannot be stopped");
    }
  }

  @Override
  public void resume() {
    signal("CONT");
  }

  @Override
  public boolean isStopped() {
    try {
      return KernelFiles.isStopped(Path.of("/proc"), pid());
    } catch (final ProofException e) {
      return false;
    }
  }

  /** Of the child of {@code timeout}, by the kernel: what the child says may not be true. */
  private long pid() {
    return process
        .children()
        .findFirst()
        .orElseThrow(() -> new ProofException("the process has ended" + why()))
        .pid();
  }

  private void signal(final String name) {
    final long pid = pid();
    try {
      final Process kill =
          new ProcessBuilder("sh", "-c", "kill -" + name + " " + pid)
              .redirectErrorStream(true)
              .start();
      if (!kill.waitFor(SIGNAL.toMillis(), TimeUnit.MILLISECONDS) || kill.exitValue() != 0) {
        throw new ProofException("the process takes no signal");
      }
    } catch (final IOException e) {
      throw new ProofException("there is no sh to send a signal: " + e.getMessage(), e);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new ProofException("interrupted", e);
    }
  }

  @Override
  public void kill() {
    // By the handles of what was started: no number of a process that is gone.
    process.descendants().forEach(ProcessHandle::destroyForcibly);
  }

  @Override
  public void close() {
    kill();
    process.destroyForcibly();
    Deadline.in(SIGNAL)
        .await(() -> !process.isAlive(), millis -> process.waitFor(millis, TimeUnit.MILLISECONDS));
    ALIVE.remove(this);
  }
}
