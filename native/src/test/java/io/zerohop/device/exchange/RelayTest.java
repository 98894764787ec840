package io.zerohop.device.exchange;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.ChildJvm;
import io.zerohop.device.Segment;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.Memory;
import io.zerohop.device.posix.Sockets;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.opentest4j.TestAbortedException;

/** A process of the same user between two others, and peers in PID namespaces of their own. */
final class RelayTest extends SegmentServerFixture {
  private static final List<String> OTHER_NAMESPACE =
      List.of("unshare", "--pid", "--fork", "--kill-child", "--mount-proc");

  @Test
  void whatPassesTheHandshakeOnReadsNothing() throws Exception {
    assertRefused(List.of(), RelayingProcess.Mode.READ);
  }

  /** Each side then sees the process that it is told of, but not under the other's proof. */
  @Test
  void whatStatesItselfInPlaceOfTheOthersIsRefused() throws Exception {
    assertRefused(List.of(), RelayingProcess.Mode.RESTATE);
  }

  @Test
  void aRelayInAnotherNamespaceIsRefused() throws Exception {
    needsNamespaces();
    assertRefused(OTHER_NAMESPACE, RelayingProcess.Mode.READ);
    assertRefused(OTHER_NAMESPACE, RelayingProcess.Mode.RESTATE);
  }

  private void assertRefused(final List<String> prefix, final RelayingProcess.Mode mode)
      throws Exception {
    start(table, SegmentServer.Limits.DEFAULT);
    final long refused = server.refused();
    final Path socket = server.socket();
    try (Segment segment = device.allocate(1);
        ChildJvm relay =
            ChildJvm.start(prefix, RelayingProcess.class, mode.name(), socket.toString())) {
      Memory.view(segment.address(), RelayingProcess.MARK.length())
          .put(RelayingProcess.MARK.getBytes(StandardCharsets.US_ASCII));
      table.add(1, segment);
      assertThat(relay.line()).isEqualTo("in its place");
      assertReason(Reason.AUTHENTICATION, () -> link().fetch(1, LIMIT).close());
      assertThat(relay.line()).isEqualTo("welcomed=false read=");
      assertThat(table.connected).hasValue(0);
      assertThat(server.refused()).isGreaterThan(refused);
    }
    Files.move(socket.resolveSibling(".real"), socket.resolveSibling("moved"));
    Files.delete(socket);
    Files.move(socket.resolveSibling("moved"), socket);
  }

  /** As executors in pods of one node: the pid says nothing, the pidfd does from Linux 6.9 on. */
  @Test
  void aPeerInAnotherNamespaceIsServed() throws Exception {
    needsNamespaces();
    try (ChildJvm child =
        ChildJvm.start(OTHER_NAMESPACE, ForeignPeer.class, "connect", server.socket().toString())) {
      assertThat(child.line()).isEqualTo("CHALLENGE");
    }
  }

  @Test
  void theKernelNamesTheProcessAtTheOtherEnd() {
    final int client = Sockets.connect(server.socket().toString());
    final ProcessIdentity seen = ProcessIdentity.ofPeer(client);
    Descriptor.close(client);
    assertThat(seen).isEqualTo(ProcessIdentity.self());
    assertThat(seen.pid()).isEqualTo(ProcessHandle.current().pid());
    assertThat(seen.start()).isPositive();
    assertThat(seen.namespace()).isPositive();
    assertThat(seen.match(seen)).isEqualTo(ProcessIdentity.Match.SAME);
  }

  @Test
  void aPidThatWasGivenAgainIsAnotherProcess() {
    final ProcessIdentity old = new ProcessIdentity(7, 100, 5_000, 0);
    assertThat(old.match(old)).isEqualTo(ProcessIdentity.Match.SAME);
    for (final ProcessIdentity other :
        List.of(
            new ProcessIdentity(7, 100, 5_001, 0),
            new ProcessIdentity(7, 101, 5_000, 0),
            new ProcessIdentity(7, 0, -1, 0),
            new ProcessIdentity(7, 100, -1, 0))) {
      assertThat(old.match(other)).as("%s", other).isEqualTo(ProcessIdentity.Match.OTHER);
    }
    // The inode of a pidfd decides alone, wherever both know it.
    final ProcessIdentity named = new ProcessIdentity(7, 100, 5_000, 40);
    assertThat(named.match(new ProcessIdentity(8, 0, -1, 40)))
        .isEqualTo(ProcessIdentity.Match.SAME);
    assertThat(named.match(new ProcessIdentity(7, 100, 5_000, 41)))
        .isEqualTo(ProcessIdentity.Match.OTHER);
    assertThat(named.match(new ProcessIdentity(7, 100, 5_000, -1)))
        .isEqualTo(ProcessIdentity.Match.OTHER);
    // Another namespace, and a kernel without such inodes.
    assertThat(old.match(new ProcessIdentity(8, 0, -1, 0)))
        .isEqualTo(ProcessIdentity.Match.UNKNOWN);
    assertThat(new ProcessIdentity(0, 100, 0, 0).match(new ProcessIdentity(0, 100, 0, 0)))
        .isEqualTo(ProcessIdentity.Match.UNKNOWN);
  }

  private static void needsNamespaces() throws Exception {
    final boolean able =
        Descriptor.userId() == 0
            && Files.isExecutable(Path.of("/usr/bin/unshare"))
            && new ProcessBuilder("unshare", "--pid", "--fork", "--mount-proc", "true")
                    .start()
                    .waitFor()
                == 0;
    if (!able) {
      final String missing = "PID namespaces can only be tried as root with unshare (util-linux)";
      if (Boolean.parseBoolean(System.getenv("CI"))) {
        throw new AssertionError(missing);
      }
      System.err.println("NOTICE: skipped: " + missing);
      throw new TestAbortedException(missing);
    }
  }
}
