package io.zerohop.device;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.platform.engine.discovery.DiscoverySelectors;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TagFilter;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.TestPlan;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;
import org.junit.platform.launcher.listeners.SummaryGeneratingListener;
import org.junit.platform.launcher.listeners.TestExecutionSummary;

/**
 * Makes seeds for fuzz tests, and runs each of these in a process of its own for a given time:
 * {@code Fuzz CLASSES OUT SECONDS}, as many at a time as there are processors. A test reads bytes
 * as another process may have written them; it may refuse them in the way that its callers expect,
 * or take them, and nothing else.
 *
 * <p>CLASSES is the folder of compiled tests. OUT gets fuzz.jsonl with a line for each test, and
 * its log, its corpus, and the input that a failure came of. A failure is also an input that takes
 * too long, or more memory than parsers need.
 */
public final class Fuzz {
  private static final int GOOD = 24;
  private static final long SEED = 20_261_122L;

  /** How long an input may take; more is a failure. */
  private static final int INPUT_SECONDS = 60;

  /** What a process may take beside its fuzzing: to start, to run the seeds, to end. */
  private static final int SLACK_SECONDS = 600;

  /** Bounds what parsers may allocate for a few kilobytes of input, the fuzzer's own included. */
  private static final String HEAP = "-Xmx512m";

  /** Of all that a fuzzer's log says, the last number of edges, and of inputs in the corpus. */
  private static final Pattern PROGRESS =
      Pattern.compile("#\\d+\\s+\\w+\\s+cov: (\\d+) ft: \\d+ corp: (\\d+)/");

  private static final Pattern CASES = Pattern.compile("stat::number_of_executed_units: (\\d+)");

  private final Path out;
  private final int seconds;

  private Fuzz(final Path out, final int seconds) {
    this.out = out;
    this.seconds = seconds;
  }

  /** Returns some inputs as they should be, always the same. */
  public static List<byte[]> good(final Function<Random, byte[]> maker) {
    final Random random = new Random(SEED);
    return Stream.generate(() -> maker.apply(random)).limit(GOOD).toList();
  }

  /** Returns {@link #good} inputs, some of them cut off, and some with bytes behind them. */
  public static Stream<Arguments> seeds(final Function<Random, byte[]> maker) {
    final List<byte[]> good = good(maker);
    final List<byte[]> seeds = new ArrayList<>(good);
    good.stream()
        .limit(GOOD / 4)
        .forEach(
            bytes -> {
              seeds.add(Arrays.copyOf(bytes, bytes.length / 2));
              seeds.add(Arrays.copyOf(bytes, Math.max(0, bytes.length - 1)));
              seeds.add(Arrays.copyOf(bytes, bytes.length + 1));
            });
    return IntStream.range(0, seeds.size())
        .mapToObj(i -> Arguments.of(Named.of("seed " + i, seeds.get(i))));
  }

  /** Runs all fuzz tests, or the one that a process of its own has been started for. */
  public static void main(final String... args) throws Exception {
    if (args[0].equals("--only")) {
      System.exit(runHere(args[1], args[2]));
    }
    final Fuzz fuzz = new Fuzz(Path.of(args[1]).toAbsolutePath(), Integer.parseInt(args[2]));
    System.exit(fuzz.runAll(Path.of(args[0])) ? 0 : 1);
  }

  private boolean runAll(final Path classes) throws Exception {
    Files.createDirectories(out);
    final Path results = out.resolve("fuzz.jsonl");
    Files.deleteIfExists(results);
    final Map<String, MethodSource> tests = testsIn(classes);
    if (tests.isEmpty()) {
      throw new IllegalStateException("no fuzz test in " + classes);
    }
    final List<String> failed = Collections.synchronizedList(new ArrayList<>());
    final ExecutorService processors =
        Executors.newFixedThreadPool(Runtime.getRuntime().availableProcessors());
    try {
      final List<Future<String>> lines = new ArrayList<>();
      tests.forEach(
          (name, test) ->
              lines.add(
                  processors.submit(
                      () -> {
                        final boolean passed = run(name, test);
                        if (!passed) {
                          failed.add(name);
                        }
                        return line(name, passed);
                      })));
      System.out.printf(Locale.ROOT, "fuzz: %d tests, %d s each%n", tests.size(), seconds);
      for (final Future<String> line : lines) {
        System.out.print(line.get());
        Files.writeString(
            results, line.get(), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
      }
    } finally {
      processors.shutdownNow();
    }
    failed.forEach(
        name -> System.err.printf(Locale.ROOT, "ERROR: %s failed; see %s%n", name, log(name)));
    return failed.isEmpty();
  }

  private Path log(final String name) {
    return out.resolve(name + ".log");
  }

  /** Returns fuzz tests by name, in its order. */
  private static Map<String, MethodSource> testsIn(final Path classes) {
    final LauncherDiscoveryRequest request =
        LauncherDiscoveryRequestBuilder.request()
            .selectors(DiscoverySelectors.selectClasspathRoots(Set.of(classes)))
            .filters(TagFilter.includeTags("jazzer"))
            .build();
    final TestPlan plan = LauncherFactory.create().discover(request);
    final Map<String, MethodSource> found = new TreeMap<>();
    for (final TestIdentifier root : plan.getRoots()) {
      for (final TestIdentifier each : plan.getDescendants(root)) {
        if (each.getSource().orElse(null) instanceof MethodSource method) {
          final String type = method.getClassName();
          found.put(
              type.substring(type.lastIndexOf('.') + 1) + "." + method.getMethodName(), method);
        }
      }
    }
    return found;
  }

  /**
   * Fuzzes in another process, since a process can fuzz once; returns whether nothing was found.
   */
  private boolean run(final String name, final MethodSource test) throws Exception {
    final Process process =
        new ProcessBuilder(command(test))
            .directory(out.toFile())
            .redirectErrorStream(true)
            .redirectOutput(log(name).toFile())
            .start();
    final Thread killer = new Thread(process::destroyForcibly);
    Runtime.getRuntime().addShutdownHook(killer);
    try {
      return process.waitFor(seconds + SLACK_SECONDS, TimeUnit.SECONDS)
          && process.exitValue() == 0
          && CASES.matcher(Files.readString(log(name))).find();
    } finally {
      process.destroyForcibly();
      Runtime.getRuntime().removeShutdownHook(killer);
    }
  }

  /** Says what the log says. */
  private String line(final String name, final boolean passed) throws IOException {
    final String text = Files.readString(log(name));
    final Matcher cases = CASES.matcher(text);
    int edges = 0;
    int corpus = 0;
    for (final Matcher at = PROGRESS.matcher(text); at.find(); ) {
      edges = Integer.parseInt(at.group(1));
      corpus = Integer.parseInt(at.group(2));
    }
    return String.format(
        Locale.ROOT,
        "{\"target\": \"%s\", \"seconds\": %d, \"cases\": %s, \"edges\": %d, \"corpus\": %d,"
            + " \"findings\": %d}%n",
        name,
        seconds,
        cases.find() ? cases.group(1) : "0",
        edges,
        corpus,
        passed ? 0 : 1);
  }

  private List<String> command(final MethodSource test) {
    return List.of(
        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
        HEAP,
        "-DJAZZER_FUZZ=1",
        "-Djazzer.hooks=true",
        "-Djazzer.instrument=io.zerohop.**",
        "-Djazzer.max_duration=" + seconds + "s",
        "-Djazzer.internal.arg.0=fuzz",
        "-Djazzer.internal.arg.1=-timeout=" + INPUT_SECONDS,
        "-Djazzer.internal.arg.2=-print_final_stats=1",
        "-cp",
        absolute(System.getProperty("java.class.path")),
        Fuzz.class.getName(),
        "--only",
        test.getClassName(),
        test.getMethodName());
  }

  private static String absolute(final String classPath) {
    return String.join(
        File.pathSeparator,
        Stream.of(classPath.split(File.pathSeparator))
            .map(entry -> Path.of(entry).toAbsolutePath().toString())
            .toList());
  }

  private static int runHere(final String type, final String method) {
    final SummaryGeneratingListener listener = new SummaryGeneratingListener();
    final Launcher launcher = LauncherFactory.create();
    launcher.execute(
        LauncherDiscoveryRequestBuilder.request()
            .selectors(DiscoverySelectors.selectMethod(type, method, "byte[]"))
            .build(),
        listener);
    final TestExecutionSummary summary = listener.getSummary();
    summary.getFailures().forEach(failure -> failure.getException().printStackTrace(System.out));
    return summary.getTestsSucceededCount() > 0 && summary.getTotalFailureCount() == 0 ? 0 : 1;
  }
}
