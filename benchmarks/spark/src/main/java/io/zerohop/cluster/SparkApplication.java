package io.zerohop.cluster;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * A Spark application in a process of its own that is asked line by line: a question goes to its
 * standard input, the answer is the next line on its standard output that begins with {@link
 * #ANSWER}. What else it prints goes to its log.
 *
 * <p>End of input tells the application to stop, so none outlives the process that started it. One
 * thread may ask at a time; {@link #close} may be called by any.
 */
public final class SparkApplication implements AutoCloseable {
  /** What an answer begins with. */
  public static final String ANSWER = "@zerohop ";

  private static final Duration STOP_LIMIT = Duration.ofSeconds(20);
  private static final int LOG_LINES_SHOWN = 12;
  private static final int EXECUTOR_LOGS_SHOWN = 2;
  private static final Pattern NOISE = Pattern.compile("\\tat |Spark Executor Command:|=+$|$");
  private static final String GONE = "";

  private final String name;
  private final Path home;
  private final Path log;
  private final Process process;
  private final Writer questions;
  private final BlockingQueue<String> answers = new LinkedBlockingQueue<>();

  private SparkApplication(
      final String name, final Path home, final Path log, final Process process) {
    this.name = name;
    this.home = home;
    this.log = log;
    this.process = process;
    this.questions = process.outputWriter(StandardCharsets.UTF_8);
    final Thread reader = new Thread(this::readAnswers, "answers-of-" + name);
    reader.setDaemon(true);
    reader.start();
  }

  /**
   * Submits an application.
   *
   * @param name what messages call it
   * @param log the file that gets what it logs; made or appended to
   */
  public static SparkApplication start(
      final String name, final SparkHome home, final Submission submission, final Path log)
      throws IOException {
    final ProcessBuilder builder = new ProcessBuilder(home.command(submission));
    builder.environment().putAll(home.environment());
    return start(name, home, builder, log);
  }

  /** Submits an application on one of two nodes, at whose address its executors find it. */
  public static SparkApplication start(
      final String name,
      final SparkHome home,
      final Node node,
      final Submission submission,
      final Path log)
      throws IOException {
    final Map<String, String> conf = new HashMap<>(submission.conf());
    conf.put("spark.driver.host", node.address());
    conf.put("spark.driver.bindAddress", node.address());
    final ProcessBuilder builder = alone(home, node.command(home.command(submission.with(conf))));
    builder.environment().put("SPARK_LOCAL_IP", node.address());
    return start(name, home, builder, log);
  }

  /** Submits an application to a cluster of somebody's, whose executors find this host. */
  public static SparkApplication submit(
      final String name, final SparkHome home, final Submission submission, final Path log)
      throws IOException {
    final ProcessBuilder builder = alone(home, home.command(submission));
    builder.environment().remove("SPARK_LOCAL_IP");
    return start(name, home, builder, log);
  }

  /** What this process was started with is about a driver of its own, if about anything. */
  private static ProcessBuilder alone(final SparkHome home, final List<String> command) {
    final ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().keySet().removeIf(key -> key.startsWith("SPARK_"));
    builder.environment().putAll(home.environment());
    return builder;
  }

  private static SparkApplication start(
      final String name, final SparkHome home, final ProcessBuilder builder, final Path log)
      throws IOException {
    builder.directory(home.root().toFile());
    builder.redirectError(ProcessBuilder.Redirect.appendTo(log.toFile()));
    return new SparkApplication(name, home.root(), log, builder.start());
  }

  /** What messages call it. */
  public String name() {
    return name;
  }

  /** The driver's process, whose descendants are the executors. */
  public ProcessHandle driver() {
    return process.toHandle();
  }

  /**
   * Asks and waits for the answer.
   *
   * @param question one line, without its end
   * @throws ClusterException if the application ends or does not answer within the limit
   */
  public String ask(final String question, final Duration limit) {
    try {
      questions.write(question + "\n");
      questions.flush();
    } catch (final IOException e) {
      throw failure("ended before it was asked '" + question + "'", e);
    }
    return answer(limit);
  }

  /**
   * Waits for a line that it says unasked, such as that it is ready.
   *
   * @throws ClusterException if the application ends or says nothing within the limit
   */
  public String answer(final Duration limit) {
    final String answer;
    try {
      answer = answers.poll(limit.toMillis(), TimeUnit.MILLISECONDS);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw failure("was not waited for: interrupted", e);
    }
    if (answer == null) {
      throw failure("gave no answer within " + limit.toSeconds() + " s", null);
    }
    if (answer.equals(GONE)) {
      answers.add(GONE);
      throw failure("ended without an answer", null);
    }
    return answer;
  }

  /**
   * Waits until it has ended by itself.
   *
   * @throws ClusterException if it ends with an error or not within the limit
   */
  public void await(final Duration limit) throws InterruptedException {
    if (!process.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS)) {
      throw failure("did not end within " + limit.toSeconds() + " s", null);
    }
    if (process.exitValue() != 0) {
      throw failure("ended with status " + process.exitValue(), null);
    }
  }

  /** Stops it and its executors: by end of input, then SIGTERM, then SIGKILL. */
  @Override
  public void close() {
    final List<ProcessHandle> executors = process.descendants().toList();
    try {
      questions.close();
    } catch (final IOException e) {
      // It is already gone, which is what closing wants.
    }
    if (!endsWithin(STOP_LIMIT)) {
      process.destroy();
      if (!endsWithin(STOP_LIMIT)) {
        process.destroyForcibly();
      }
    }
    executors.forEach(SparkApplication::awaitEnd);
  }

  /** Executors tidy up when their driver is gone; only one that hangs is killed. */
  private static void awaitEnd(final ProcessHandle executor) {
    try {
      executor.onExit().get(STOP_LIMIT.toMillis(), TimeUnit.MILLISECONDS);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      executor.destroyForcibly();
    } catch (final ExecutionException | TimeoutException e) {
      executor.destroyForcibly();
    }
  }

  private boolean endsWithin(final Duration limit) {
    try {
      return process.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private void readAnswers() {
    try (BufferedReader lines =
            new BufferedReader(
                new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        Writer rest = Files.newBufferedWriter(Path.of(log + ".out"))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        if (line.startsWith(ANSWER)) {
          answers.add(line.substring(ANSWER.length()));
        } else {
          rest.write(line + "\n");
        }
      }
    } catch (final IOException e) {
      throw new UncheckedIOException("reading the output of " + name, e);
    } finally {
      answers.add(GONE);
    }
  }

  private ClusterException failure(final String what, final Throwable cause) {
    final StringBuilder message =
        new StringBuilder("the Spark application '" + name + "' " + what + "; its logs end:");
    for (final Path file : logs()) {
      message.append("\n").append(file).append(":\n").append(logEnd(file));
    }
    return new ClusterException(message.toString(), cause);
  }

  /** The driver's log and the executors' first failures, which are where a cause is found. */
  private List<Path> logs() {
    final List<Path> logs = new ArrayList<>(List.of(log));
    try (Stream<Path> files = Files.walk(home.resolve("work"))) {
      files
          .filter(file -> file.endsWith("stderr"))
          .sorted()
          .limit(EXECUTOR_LOGS_SHOWN)
          .forEach(logs::add);
    } catch (final IOException | UncheckedIOException e) {
      // No executor was started, so there is nothing of it to show.
    }
    return logs;
  }

  private static String logEnd(final Path file) {
    try (Stream<String> lines = Files.lines(file)) {
      final List<String> all = lines.filter(line -> !NOISE.matcher(line).lookingAt()).toList();
      return String.join("\n", all.subList(Math.max(0, all.size() - LOG_LINES_SHOWN), all.size()));
    } catch (final IOException | UncheckedIOException e) {
      return "(not readable: " + e.getMessage() + ")";
    }
  }
}
