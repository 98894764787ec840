package io.zerohop.device.exchange;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.ChildJvm;
import io.zerohop.device.Leaks;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.NativeLibrary;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.opentest4j.TestAbortedException;

/**
 * Processes of another user, made by setpriv, which only root can. The child may pass by file
 * permissions, so that what refuses it is the exchange itself and not the folder's mode.
 */
final class ForeignUserTest {
  private static final String FOREIGN_USER = "65534";
  private static final List<String> AS_FOREIGN_USER =
      List.of(
          "setpriv",
          "--reuid=" + FOREIGN_USER,
          "--regid=" + FOREIGN_USER,
          "--clear-groups",
          "--inh-caps=+dac_override",
          "--ambient-caps=+dac_override");

  @TempDir Path scratch;

  @BeforeEach
  void needsRootAndSetpriv() {
    NativeLibrary.require();
    final boolean able =
        Descriptor.userId() == 0 && Files.isExecutable(Path.of("/usr/bin/setpriv"));
    if (able) {
      return;
    }
    final String missing = "foreign users can only be tried as root with setpriv (util-linux)";
    if (Boolean.parseBoolean(System.getenv("CI"))) {
      throw new AssertionError(missing);
    }
    System.err.println("NOTICE: skipped: " + missing);
    throw new TestAbortedException(missing);
  }

  @Test
  void aPeerOfAnotherUserIsRefusedBeforeItSaysAnything() throws Exception {
    final Leaks leaks = new Leaks();
    final SegmentTable table = new SegmentTable();
    try (SocketFolder folder = SocketFolder.open(scratch.resolve("s"), "app");
        SegmentServer server =
            new SegmentServer(
                folder, "server", SegmentTable.SECRET, table, SegmentServer.Limits.DEFAULT)) {
      server.start();
      try (ChildJvm child =
          ChildJvm.start(
              AS_FOREIGN_USER, ForeignPeer.class, "connect", server.socket().toString())) {
        assertThat(child.line()).isEqualTo("AUTHENTICATION");
        assertThat(child.exitCode()).isZero();
      }
      assertThat(table.connected.get()).isZero();
    }
    leaks.check();
  }

  @Test
  void aServerAndAFolderOfAnotherUserAreRefused() throws Exception {
    final Leaks leaks = new Leaks();
    Files.setPosixFilePermissions(scratch, PosixFilePermissions.fromString("rwxrwxrwx"));
    final Path base = scratch.resolve("s");
    try (ChildJvm child =
        ChildJvm.start(AS_FOREIGN_USER, ForeignPeer.class, "serve", base.toString())) {
      assertThat(child.line()).isEqualTo("ready");
      assertThatThrownBy(
              () ->
                  PeerLink.connect(
                      base.resolve("app").resolve("server"),
                      "client",
                      "server",
                      SegmentTable.SECRET,
                      Duration.ofSeconds(60)))
          .isInstanceOfSatisfying(
              ExchangeException.class, e -> assertThat(e.reason()).isEqualTo(Reason.AUTHENTICATION))
          .hasMessageContaining("another user");
      assertThatThrownBy(() -> SocketFolder.open(base, "app").close())
          .hasMessageContaining("belongs to user " + FOREIGN_USER);
      child.kill();
    }
    leaks.check();
  }
}
