package io.zerohop.cluster;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * One of {@link TwoNodes}: a network namespace with one address beside its own loopback.
 *
 * @param id tells it from the other, in {@code spark.zerohop.node.id}
 * @param namespace its name as {@code ip netns} has it
 * @param address at which the other node reaches it
 */
public record Node(String id, String namespace, String address) {
  /** The end of the link that lies in each node. */
  static final String DEVICE = "eth0";

  private static final long LINK_LIMIT_SECONDS = 20;

  /**
   * The command that runs another one on this node. It becomes that one, so that signals, standard
   * input and its end are those of the other one.
   */
  public List<String> command(final List<String> other) {
    final List<String> command = new ArrayList<>(List.of("ip", "netns", "exec", namespace));
    command.addAll(other);
    return command;
  }

  /**
   * Runs a command here to its end.
   *
   * @return what it has printed
   * @throws ClusterException if it fails or takes longer than system commands should
   */
  public String run(final String... other) {
    return SystemCommand.run(command(List.of(other)));
  }

  /** Ids of the processes that run here. */
  public List<Long> processes() {
    return SystemCommand.run(List.of("ip", "netns", "pids", namespace))
        .lines()
        .map(String::strip)
        .filter(line -> !line.isEmpty())
        .map(Long::valueOf)
        .toList();
  }

  /** Changes the network of this node, by words for {@code ip}. */
  void ip(final String words) {
    final List<String> command = new ArrayList<>(List.of("ip", "-n", namespace));
    command.addAll(List.of(words.split(" ")));
    SystemCommand.run(command);
  }

  /** The kernel takes its time to say that a link is up, and UCX does not use one before. */
  void awaitLink() {
    final long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(LINK_LIMIT_SECONDS);
    while (!run("cat", "/sys/class/net/" + DEVICE + "/operstate").equals("up")) {
      if (System.nanoTime() > end) {
        throw new ClusterException("the link of " + namespace + " does not come up");
      }
    }
  }
}
