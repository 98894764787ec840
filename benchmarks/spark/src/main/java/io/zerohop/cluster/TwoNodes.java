package io.zerohop.cluster;

import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Two nodes on one machine: network namespaces that one link joins, and nothing joins with the
 * machine's own network. The link can be cut, lose packets and be slow.
 *
 * <p>Needs root, {@code ip} and {@code nft}. What it makes goes when it is closed or this process
 * ends; after a SIGKILL, when somebody makes two nodes the next time. Not for several threads,
 * except {@link #close}.
 */
public final class TwoNodes implements AutoCloseable {
  private static final Pattern NAME = Pattern.compile("zerohop-(\\d+)-.*");
  private static final long END_LIMIT_SECONDS = 20;
  private static final AtomicInteger MADE = new AtomicInteger();

  private final Node first;
  private final Node second;
  private final AtomicBoolean closed = new AtomicBoolean();
  private final Thread atExit = new Thread(this::remove, "remove-two-nodes");

  private TwoNodes(final String name) {
    this.first = new Node("one", name + "-one", "10.201.0.1");
    this.second = new Node("two", name + "-two", "10.201.0.2");
  }

  /**
   * Makes them, and removes what killed processes have left.
   *
   * @throws ClusterException if this user or system cannot have them; the message says which
   *     command failed and how
   */
  public static TwoNodes make() {
    removeLeftOvers();
    final TwoNodes nodes =
        new TwoNodes("zerohop-" + ProcessHandle.current().pid() + "-" + MADE.incrementAndGet());
    Runtime.getRuntime().addShutdownHook(nodes.atExit);
    try {
      nodes.build();
      return nodes;
    } catch (final RuntimeException e) {
      nodes.close();
      throw e;
    }
  }

  /** Where masters and drivers run. */
  public Node first() {
    return first;
  }

  /** The other one. */
  public Node second() {
    return second;
  }

  /**
   * Takes the link down at one end: nothing passes in either direction. Who sends at that end is
   * told that there is no way; at the other end packets vanish.
   */
  public void cut(final Node end) {
    end.ip("link set " + Node.DEVICE + " down");
  }

  /** Takes the link up again, at both ends; returns when programs find it up. */
  public void mend() {
    for (final Node node : List.of(first, second)) {
      node.ip("link set " + Node.DEVICE + " up");
    }
    first.awaitLink();
    second.awaitLink();
  }

  /** Drops so many of a hundred packets at random, in both directions. */
  public void lose(final int percent) {
    rule("numgen random mod 100 < " + percent + " drop");
  }

  /** Drops what comes faster than so many MB (of 2^20 bytes) a second, in each direction. */
  public void slow(final int mebibytesPerSecond) {
    rule("limit rate over " + mebibytesPerSecond + " mbytes/second drop");
  }

  /**
   * Lets no more through than a link of so many gigabits a second, in each direction: who sends
   * waits, and nothing is dropped before the queue has 50 ms. Stays as long as the nodes do.
   */
  public void limit(final int gigabits) {
    for (final Node node : List.of(first, second)) {
      final String filter = "root tbf rate " + gigabits + "gbit burst 2mb latency 50ms";
      node.run(("tc qdisc add dev " + Node.DEVICE + " " + filter).split(" "));
    }
  }

  /** Lets every packet pass again. */
  public void clear() {
    for (final Node node : List.of(first, second)) {
      node.run("nft", "flush", "chain", "inet", "zerohop", "input");
    }
  }

  /** Kills what still runs on the nodes and removes them. */
  @Override
  public void close() {
    if (remove()) {
      Runtime.getRuntime().removeShutdownHook(atExit);
    }
  }

  private void build() {
    for (final Node node : List.of(first, second)) {
      SystemCommand.run(List.of("ip", "netns", "add", node.namespace()));
    }
    // Made inside, so that neither names nor addresses can clash with the machine's own.
    final String far = second.namespace();
    first.ip(
        String.format(
            Locale.ROOT, "link add %1$s type veth peer name %1$s netns %2$s", Node.DEVICE, far));
    for (final Node node : List.of(first, second)) {
      node.ip("addr add " + node.address() + "/24 dev " + Node.DEVICE);
      node.ip("link set lo up");
      node.run("nft", "add", "table", "inet", "zerohop");
      node.run("nft", "add chain inet zerohop input { type filter hook input priority 0; }");
    }
    mend();
  }

  private void rule(final String rule) {
    for (final Node node : List.of(first, second)) {
      node.run("nft", "add rule inet zerohop input iifname " + Node.DEVICE + " " + rule);
    }
  }

  /** Returns false if somebody else has done it. */
  private boolean remove() {
    if (!closed.compareAndSet(false, true)) {
      return false;
    }
    final List<String> there = namespaces();
    for (final Node node : List.of(first, second)) {
      if (there.contains(node.namespace())) {
        remove(node);
      }
    }
    return true;
  }

  private static void removeLeftOvers() {
    for (final String name : namespaces()) {
      final Matcher matcher = NAME.matcher(name);
      if (matcher.matches() && ProcessHandle.of(Long.parseLong(matcher.group(1))).isEmpty()) {
        remove(new Node("", name, ""));
      }
    }
  }

  private static void remove(final Node node) {
    for (final long pid : node.processes()) {
      ProcessHandle.of(pid).ifPresent(TwoNodes::end);
    }
    SystemCommand.run(List.of("ip", "netns", "del", node.namespace()));
  }

  private static void end(final ProcessHandle process) {
    process.destroyForcibly();
    try {
      process.onExit().get(END_LIMIT_SECONDS, TimeUnit.SECONDS);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (final ExecutionException | TimeoutException e) {
      throw new ClusterException("process " + process.pid() + " of a node outlives SIGKILL", e);
    }
  }

  private static List<String> namespaces() {
    return SystemCommand.run(List.of("ip", "netns", "list"))
        .lines()
        .map(line -> line.split(" ")[0])
        .toList();
  }
}
