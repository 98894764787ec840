package io.zerohop.shuffle.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.format.ResultFormatType;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.CommandLineOptionException;
import org.openjdk.jmh.runner.options.CommandLineOptions;
import org.openjdk.jmh.runner.options.OptionsBuilder;

/**
 * Runs the benchmarks of this module and prints their results, with the bytes allocated for each
 * operation, as JSON; progress goes to a log file that is named first. Arguments of main are JMH's.
 *
 * <pre>
 *  mvn -B -q -pl benchmarks/micro -am -Pbenchmarks -DskipTests test
 * </pre>
 */
public final class Benchmarks {
  private Benchmarks() {}

  public static void main(final String[] arguments)
      throws RunnerException, IOException, CommandLineOptionException {
    final Path log = Files.createTempFile("zerohop-jmh-", ".log");
    final Path result = Files.createTempFile("zerohop-jmh-", ".json");
    System.err.println("progress: " + log);
    new Runner(
            new OptionsBuilder()
                .parent(new CommandLineOptions(arguments))
                .shouldFailOnError(true)
                .addProfiler(GCProfiler.class)
                .resultFormat(ResultFormatType.JSON)
                .result(result.toString())
                .output(log.toString())
                .build())
        .run();
    System.out.println(Files.readString(result));
    Files.delete(result);
  }
}
