package io.zerohop.bench;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.zerohop.cluster.ClusterException;
import io.zerohop.cluster.TwoNodes;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/**
 * What UCX has between two nodes of this machine over TCP, by its own {@code ucx_perftest}: the
 * yardstick of blocks that go between nodes. Prints one JSON object a line.
 */
@Command(
    name = "ucx_get",
    mixinStandardHelpOptions = true,
    description = "ucx_perftest between two network namespaces, over TCP; needs root")
final class UcxGet implements Callable<Integer> {
  private static final String TOOL = "ucx_perftest";
  private static final int OVERALL_BANDWIDTH = 5;
  private static final int WARM_UPS = 10;
  private static final long SETTLE_MS = 500;
  private static final double MIB_IN_GB = (1 << 20) / 1e9;

  @Option(
      names = "--tests",
      split = ",",
      paramLabel = "NAME",
      description = "what ucx_perftest shall do (default: ucp_get)")
  private List<String> tests = List.of("ucp_get");

  @Option(
      names = "--sizes",
      split = ",",
      paramLabel = "BYTES",
      description = "bytes of a message (default: 1 MiB and 16 MiB)")
  private List<Long> sizes = List.of(1L << 20, 16L << 20);

  @Option(
      names = "--mib",
      paramLabel = "MIB",
      defaultValue = "2048",
      description = "what is moved each time (default: ${DEFAULT-VALUE})")
  private long mib;

  @Mixin private RunOptions run;

  private UcxGet() {}

  @Override
  public Integer call() throws IOException {
    final ObjectMapper json = new ObjectMapper();
    try (TwoNodes nodes = TwoNodes.make()) {
      for (final String test : tests) {
        for (final long size : sizes) {
          final Map<String, Object> row = new LinkedHashMap<>();
          row.put("bench", "ucx_get");
          row.put("test", test);
          row.put("message_bytes", size);
          row.put("gb_per_s", gigabytesPerSecond(nodes, test, size));
          row.put("commit", run.commit());
          System.out.println(json.writeValueAsString(row));
        }
      }
    }
    return 0;
  }

  private double gigabytesPerSecond(final TwoNodes nodes, final String test, final long size)
      throws IOException {
    final Process server =
        new ProcessBuilder(nodes.first().command(tcp()))
            .redirectErrorStream(true)
            .redirectOutput(run.folder().resolve("server.log").toFile())
            .start();
    try {
      pause();
      final String count = Long.toString(Math.max(1, (mib << 20) / size));
      final String said =
          nodes
              .second()
              .run(
                  tcp(
                          nodes.first().address(),
                          "-f",
                          "-v",
                          "-t",
                          test,
                          "-s",
                          "" + size,
                          "-n",
                          count,
                          "-w",
                          "" + WARM_UPS)
                      .toArray(String[]::new));
      return bandwidth(said) * MIB_IN_GB;
    } finally {
      server.destroyForcibly();
    }
  }

  /** The tool, which would find out that both nodes have one kernel, and use shared memory. */
  private static List<String> tcp(final String... options) {
    final List<String> command = new ArrayList<>(List.of("env", "UCX_TLS=tcp", TOOL));
    command.addAll(List.of(options));
    return command;
  }

  /** In MiB/s, from a heading and one line, both with commas. */
  private static double bandwidth(final String said) {
    final String[] fields = said.substring(said.lastIndexOf('\n') + 1).strip().split(",");
    try {
      return Double.parseDouble(fields[OVERALL_BANDWIDTH]);
    } catch (final ArrayIndexOutOfBoundsException | NumberFormatException e) {
      throw new ClusterException(TOOL + " said no bandwidth: " + said, e);
    }
  }

  /** The server does not say when it listens, and the client does not try twice. */
  private static void pause() {
    try {
      Thread.sleep(SETTLE_MS);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new ClusterException("a measurement was interrupted", e);
    }
  }
}
