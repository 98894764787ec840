package io.zerohop.device;

import io.zerohop.device.posix.KernelFiles;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/** Another JVM with the same class path, which says what it does line by line. */
public final class ChildJvm implements AutoCloseable {
  private final Process process;
  private final BufferedReader output;

  private ChildJvm(final Process process) {
    this.process = process;
    this.output =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
  }

  /** Starts {@code main} with arguments; {@code prefix} goes before the java command. */
  public static ChildJvm start(
      final List<String> prefix, final Class<?> main, final String... arguments)
      throws IOException {
    final List<String> command = new ArrayList<>(prefix);
    command.add(System.getProperty("java.home") + "/bin/java");
    // JVMs of several PID namespaces would share one file of performance data, and warn of it.
    command.addAll(
        List.of("-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"));
    command.addAll(List.of("-cp", classPath(), main.getName()));
    command.addAll(List.of(arguments));
    return new ChildJvm(
        new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start());
  }

  /** Surefire may hide the class path in a jar's manifest and keeps the real one here. */
  private static String classPath() {
    return System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
  }

  /**
   * The next line it prints; null at its end. The test's watchdog is the limit.
   *
   * @throws AssertionError with what the child says of it, if it has crashed
   */
  public String line() throws IOException {
    final String line = output.readLine();
    if (line != null && line.startsWith("#")) { // As the JVM's fatal errors begin.
      throw new AssertionError(
          output.lines().collect(Collectors.joining("\n", "child " + pid() + " crashed:\n", "")));
    }
    return line;
  }

  public long pid() {
    return process.pid();
  }

  /** SIGSTOP. Returns when each of its threads is stopped. */
  public static void stop(final long pid) throws IOException, InterruptedException {
    signal(pid, "STOP");
    final long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    while (!KernelFiles.isStopped(Path.of("/proc"), pid)) {
      if (System.nanoTime() - end > 0) {
        throw new AssertionError("process " + pid + " does not stop");
      }
      Thread.sleep(1);
    }
  }

  /** Sends a signal, such as CONT. */
  public static void signal(final long pid, final String name)
      throws IOException, InterruptedException {
    if (new ProcessBuilder("sh", "-c", "kill -" + name + " " + pid).start().waitFor() != 0) {
      throw new AssertionError("no process " + pid + " gets signal " + name);
    }
  }

  /** Waits for its end. */
  public int exitCode() throws InterruptedException {
    if (!process.waitFor(60, TimeUnit.SECONDS)) {
      throw new AssertionError("child " + process.pid() + " does not end");
    }
    return process.exitValue();
  }

  /** SIGKILL, and waits until it is dead. */
  public void kill() throws InterruptedException {
    process.destroyForcibly();
    exitCode();
  }

  @Override
  public void close() throws IOException {
    process.destroyForcibly();
    output.close();
  }
}
