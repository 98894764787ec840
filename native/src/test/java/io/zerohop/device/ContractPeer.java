package io.zerohop.device;

import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.exchange.SegmentServer;
import io.zerohop.device.exchange.SegmentTable;
import io.zerohop.device.exchange.SocketFolder;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.CountDownLatch;

/** The other process of the contract tests. */
public final class ContractPeer {
  static final long SEGMENT_ID = 7;
  static final Duration LIMIT = Duration.ofSeconds(60);
  static final int ROUNDS = 2_000;
  static final long PING_OFFSET = 0;
  static final long PONG_OFFSET = 64;
  static final int PATTERN_BYTES = 1 << 20;

  private ContractPeer() {}

  /** Arguments: echo|export|read, class of the device under test, base folder of sockets. */
  public static void main(final String[] arguments) throws Exception {
    final DeviceUnderTest subject =
        (DeviceUnderTest) Class.forName(arguments[1]).getConstructor().newInstance();
    final Path base = Path.of(arguments[2]);
    switch (arguments[0]) {
      case "echo" -> echo(subject, base);
      case "read" -> read(subject, base);
      default -> export(subject, base);
    }
  }

  static byte[] pattern() {
    final byte[] pattern = new byte[PATTERN_BYTES];
    new Random(5).nextBytes(pattern);
    return pattern;
  }

  /** Maps the parent's segment and answers each ping by a pong, from just below the wrap-around. */
  private static void echo(final DeviceUnderTest subject, final Path base) {
    try (Device device = subject.open();
        SocketFolder folder = SocketFolder.open(base, "app");
        PeerLink link =
            PeerLink.connect(
                folder.socket("parent"), "child", "parent", SegmentTable.SECRET, LIMIT);
        Segment segment = device.map(link.fetch(SEGMENT_ID, LIMIT), "a peer")) {
      final Signal ping = device.signal(segment, PING_OFFSET);
      final Signal pong = device.signal(segment, PONG_OFFSET);
      for (int i = 1; i <= ROUNDS; i++) {
        ping.await(firstEpoch() + i, LIMIT, () -> !link.alive());
        pong.raise(firstEpoch() + i);
      }
    }
    System.out.println("done");
  }

  /** Compares the parent's segment with the pattern. */
  private static void read(final DeviceUnderTest subject, final Path base) {
    try (Device device = subject.open();
        SocketFolder folder = SocketFolder.open(base, "app");
        PeerLink link =
            PeerLink.connect(
                folder.socket("parent"), "child", "parent", SegmentTable.SECRET, LIMIT);
        Segment segment = device.map(link.fetch(SEGMENT_ID, LIMIT), "a peer")) {
      final byte[] bytes = subject.read(segment.address(), PATTERN_BYTES);
      System.out.println(Arrays.equals(bytes, pattern()) ? "same" : "different");
    }
  }

  /** Half of the rounds lie before the wrap-around, half behind it. */
  static int firstEpoch() {
    return Integer.MAX_VALUE - ROUNDS / 2;
  }

  private static void export(final DeviceUnderTest subject, final Path base) throws Exception {
    try (Device device = subject.open();
        Segment segment = device.allocate(PATTERN_BYTES)) {
      subject.write(segment.address(), pattern());
      serve(base, SEGMENT_ID, segment);
    }
  }

  /** Serves a segment until this process is killed. */
  public static void serve(final Path base, final long segmentId, final Segment segment)
      throws Exception {
    try (SocketFolder folder = SocketFolder.open(base, "app");
        SegmentServer server =
            new SegmentServer(
                folder,
                "child",
                SegmentTable.SECRET,
                new SegmentTable().add(segmentId, segment),
                SegmentServer.Limits.DEFAULT)) {
      server.start();
      System.out.println("ready");
      new CountDownLatch(1).await();
    }
  }
}
