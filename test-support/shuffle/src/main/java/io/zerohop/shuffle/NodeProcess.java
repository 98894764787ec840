package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.ChildJvm;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.FakeStaging;
import io.zerohop.shuffle.transport.SharedTransfers;
import io.zerohop.shuffle.transport.remote.RemoteService.RemoteThreads;
import io.zerohop.shuffle.transport.samenode.Keeping;
import io.zerohop.shuffle.write.MapOutput;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;

/**
 * A node in a process of its own, which has a device if its name begins so, or if it is one of
 * several that are {@link #linked}. It takes commands, one a line, and answers each with one line:
 *
 * <pre>
 *  write SHUFFLE MAPS            writes and commits map outputs 0..MAPS-1
 *  read OWNER LOCATION SHUFFLE MAPS   fetches all blocks and checks every byte
 *  hold OWNER LOCATION SHUFFLE MAPS   fetches the first block and keeps the window
 *  finish                        reads the rest of the window that is held
 *  unregister SHUFFLE
 *  kept SHUFFLE MAPS             how many of these outputs a keeper holds
 *  keeperPort SHUFFLE            where the keeper of its output 0 answers other nodes
 *  used                          bytes of the pool in use
 *  lent                          bytes of GPU memory that it lends
 *  borrowed                      bytes of GPU memory that it has borrowed
 *  returned                      bytes of GPU memory that its pool has freed since the start
 *  exhaust                       takes all threads that this process can have
 *  release                       gives them back
 *  another                       starts one more node, and ends it
 *  work                          the threads that do a long chore, and what is for other nodes
 *  pend MAPS                     publishes map outputs of shuffle 1 whose copies its device holds
 *  letGo                         has the device do them
 *  fail                          the same as pend, of copies that fail; what ends the process then
 *  stick                         what a read of copies that never end fails with, and two closes
 * </pre>
 */
final class NodeProcess implements AutoCloseable {
  static final int PARTITIONS = 60;
  static final int MOST = 500;
  static final int BATCHES = 2;
  static final String WITH_DEVICE = "far";

  /** Stands for where a process looks by itself. */
  static final java.nio.file.Path DEFAULT_BASE = java.nio.file.Path.of("default");

  private final String executorId;
  private final Process process;
  private final BufferedReader answers;
  private final BufferedWriter commands;
  private final Location location;
  private boolean isPaused;

  NodeProcess(final java.nio.file.Path base, final String executorId) throws IOException {
    this(List.of(), base, executorId);
  }

  /**
   * @param prefix goes before the java command
   */
  NodeProcess(final List<String> prefix, final java.nio.file.Path base, final String executorId)
      throws IOException {
    this(prefix, base, executorId, List.of());
  }

  /**
   * Starts a neighbour of others that has a GPU with links to theirs.
   *
   * @param pool bytes of its GPU memory for blocks
   */
  static NodeProcess linked(
      final java.nio.file.Path base, final String executorId, final int gpu, final long pool)
      throws IOException {
    return new NodeProcess(
        List.of(), base, executorId, List.of(Integer.toString(gpu), Long.toString(pool)));
  }

  private NodeProcess(
      final List<String> prefix,
      final java.nio.file.Path base,
      final String executorId,
      final List<String> gpu)
      throws IOException {
    this.executorId = executorId;
    // Surefire may hide the class path in a jar's manifest and keeps the real one here.
    final String classPath =
        System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
    final List<String> command = new ArrayList<>(prefix);
    command.add(System.getProperty("java.home") + "/bin/java");
    command.addAll(List.of("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"));
    command.addAll(List.of("-Xlog:disable", "-Xlog:all=warning:stderr")); // No answers.
    command.addAll(List.of("-cp", classPath, NodeProcess.class.getName()));
    command.addAll(List.of(base.toString(), executorId));
    command.addAll(gpu);
    process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    answers = process.inputReader(StandardCharsets.UTF_8);
    commands = process.outputWriter(StandardCharsets.UTF_8);
    location = Location.parse(answers.readLine());
    assertThat(location).isNotNull();
  }

  String executorId() {
    return executorId;
  }

  Location location() {
    return location;
  }

  BlockSource source(final int shuffleId, final int maps) {
    return source(executorId, location, shuffleId, maps);
  }

  private static BlockSource source(
      final String executorId, final Location location, final int shuffleId, final int maps) {
    return TestBlocks.source(executorId, location, shuffleId, 0, maps, BATCHES, PARTITIONS, MOST);
  }

  /** Sends a command and returns the answer. */
  String ask(final Object... words) throws IOException {
    for (final Object word : words) {
      commands.append(word.toString()).append(' ');
    }
    commands.append('\n').flush();
    return answers.readLine();
  }

  /** What the system limits it to, by the name that /proc has for it. */
  String limit(final String name) throws IOException {
    return Files.readAllLines(java.nio.file.Path.of("/proc/" + process.pid() + "/limits")).stream()
        .filter(line -> line.startsWith(name))
        .map(line -> line.substring(name.length()).trim().split(" +")[0])
        .findFirst()
        .orElseThrow();
  }

  /** SIGSTOP: it lives, but says and does nothing until {@link #resume}. */
  void pause() throws IOException, InterruptedException {
    isPaused = true;
    ChildJvm.stop(process.pid());
  }

  void resume() throws IOException, InterruptedException {
    ChildJvm.signal(process.pid(), "CONT");
    isPaused = false;
  }

  /** SIGKILL, and waits until it is dead. */
  void kill() throws InterruptedException {
    process.destroyForcibly();
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
  }

  /** Lets it end in good order, unless it was killed. One that is paused still is killed. */
  @Override
  public void close() throws IOException {
    if (isPaused) {
      process.destroyForcibly().onExit().join();
    } else if (process.isAlive()) {
      commands.close();
      try {
        assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
        assertThat(process.exitValue()).isZero();
      } catch (final InterruptedException e) {
        process.destroyForcibly();
        Thread.currentThread().interrupt();
        throw new IOException("interrupted", e);
      }
    }
    answers.close();
  }

  public static void main(final String[] arguments) throws IOException {
    final boolean isLinked = arguments.length > 2;
    final boolean hasDevice = isLinked || arguments[1].startsWith(WITH_DEVICE);
    final DeviceOnlyGpu device = hasDevice ? new DeviceOnlyGpu() : null;
    final ShuffleNode.Setup setup =
        isLinked
            ? TestNodes.linked(
                base(arguments[0]),
                arguments[1],
                Integer.parseInt(arguments[2]),
                Long.parseLong(arguments[3]))
            : TestNodes.config(base(arguments[0]), arguments[1]);
    try (ShuffleNode node = ShuffleNode.start(setup.set("keeper", true), device)) {
      System.out.println(node.location().encode());
      final BufferedReader commands =
          new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      final Commands session = new Commands(node, device, base(arguments[0]));
      for (String line = commands.readLine(); line != null; line = commands.readLine()) {
        String answer;
        try {
          answer = session.run(line.split(" "));
        } catch (final RuntimeException | AssertionError e) {
          answer = "failed: " + e.toString().replace('\n', ' ');
        }
        System.out.println(answer);
      }
    }
  }

  private static java.nio.file.Path base(final String argument) {
    return argument.equals(DEFAULT_BASE.toString()) ? null : java.nio.file.Path.of(argument);
  }

  private static final class Commands {
    private final ShuffleNode node;
    private final DeviceOnlyGpu device;
    private final java.nio.file.Path base;
    private final AllThreads threads = new AllThreads();
    private Fetch held;

    private Commands(
        final ShuffleNode node, final DeviceOnlyGpu device, final java.nio.file.Path base) {
      this.node = node;
      this.device = device;
      this.base = base;
    }

    private String run(final String[] words) {
      switch (words[0]) {
        case "write":
          for (int map = 0; map < Integer.parseInt(words[2]); map++) {
            TestBlocks.put(node, Integer.parseInt(words[1]), map, BATCHES, PARTITIONS, MOST);
          }
          return "ok";
        case "read":
          return read(source(words));
        case "hold":
          held =
              node.fetch(
                  List.of(source(words)), TestNodes.noStaging(), TestNodes.quiet(), () -> false);
          return Boolean.toString(held.next());
        case "finish":
          return finish();
        case "unregister":
          node.unregisterShuffle(Integer.parseInt(words[1]));
          return "ok";
        case "kept":
          return Long.toString(
              LongStream.range(0, Integer.parseInt(words[2]))
                  .filter(
                      map -> node.keeperPort(Integer.parseInt(words[1]), map) != Keeping.NOT_KEPT)
                  .count());
        case "keeperPort":
          return Integer.toString(node.keeperPort(Integer.parseInt(words[1]), 0));
        case "lent":
          return Long.toString(node.stats().device().loans().lentBytes());
        case "borrowed":
          return Long.toString(node.stats().device().loans().borrowedBytes());
        case "returned":
          return Long.toString(node.stats().device().returnedBytes());
        case "used":
          return Long.toString(node.stats().poolUsedBytes());
        case "exhaust":
          threads.take();
          return "ok";
        case "release":
          threads.release(Integer.MAX_VALUE);
          return "ok";
        case "work":
          return work();
        case "pend":
          device.hold();
          new GpuBlocks(device).write(node, "far", Integer.parseInt(words[1]), 1);
          return Integer.toString(node.stats().outputs().pendingCommits());
        case "fail":
          return fail();
        case "stick":
          return stick();
        case "letGo":
          device.letGo();
          return "ok";
        case "another":
          return threads.startAnother(() -> TestNodes.start(base, "another"));
        default:
          return "failed: what is " + words[0];
      }
    }

    private String work() {
      final CompletableFuture<String> longChore = new CompletableFuture<>();
      final CompletableFuture<String> forOthers = new CompletableFuture<>();
      try (RemoteThreads remote = new RemoteThreads();
          Housekeeping.Chore chore =
              node.housekeeping()
                  .everyLong("long", Duration.ofDays(1), () -> true, () -> complete(longChore));
          Housekeeping.Chore often =
              node.housekeeping().every("often", Duration.ofMillis(10), remote::maintain)) {
        remote.sends().execute(() -> complete(forOthers));
        chore.hurry();
        assertThat(often).isNotNull();
        return longChore.join() + " " + forOthers.join();
      }
    }

    private static void complete(final CompletableFuture<String> by) {
      by.complete(Thread.currentThread().getName());
    }

    private String fail() {
      final CompletableFuture<Throwable> end = new CompletableFuture<>();
      Thread.setDefaultUncaughtExceptionHandler((thread, error) -> end.complete(error));
      device.fail("zerohop-copy-completions", DeviceOnlyGpu.Failure.BROKEN);
      device.hold();
      new GpuBlocks(device).write(node, "far", 1, 1);
      return end.join().toString();
    }

    /** Its files cannot be deleted either. */
    private String stick() {
      final MapOutput writer =
          node.newMapOutput(1, 0, GpuBlocks.PARTITIONS, Tier.HOST, new UnusedFiles(false));
      new GpuBlocks(device).append(writer, 0, 0);
      device.fail(Thread.currentThread().getName(), DeviceOnlyGpu.Failure.STUCK);
      final List<String> failures = new ArrayList<>();
      final List<Runnable> steps =
          List.of(() -> TestBlocks.written(writer, 0), writer::close, writer::close);
      for (final Runnable step : steps) {
        try {
          step.run();
        } catch (final ZerohopException e) {
          failures.add(e.category() + " " + List.of(e.getSuppressed()));
        }
      }
      return failures.toString();
    }

    /** Stages as executors do, by threads that ask. */
    private String read(final BlockSource source) {
      try (SharedTransfers staging =
          new SharedTransfers(
              new FakeStaging(BATCHES, MOST),
              any -> true,
              2,
              Duration.ofMinutes(1),
              Clock.system())) {
        return TestNodes.fetchAndCheck(node, staging, BATCHES, MOST, source).keySet().toString();
      }
    }

    private String finish() {
      try (Fetch fetcher = held) {
        int blocks = 0;
        do {
          final Block block = fetcher.block().block();
          assertThat(TestNodes.read(fetcher.block()))
              .isEqualTo(
                  TestBlocks.block(
                      block.shuffleId(), block.mapId(), BATCHES, block.partition(), MOST));
          blocks++;
        } while (fetcher.next());
        return Integer.toString(blocks);
      }
    }

    private static BlockSource source(final String[] words) {
      return NodeProcess.source(
          words[1],
          Location.parse(words[2]),
          Integer.parseInt(words[3]),
          Integer.parseInt(words[4]));
    }
  }
}
