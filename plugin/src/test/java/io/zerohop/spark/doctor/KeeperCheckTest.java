package io.zerohop.spark.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.Sockets;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.spark.doctor.Finding.Verdict;
import io.zerohop.spark.doctor.Machine.KeeperCheck;
import io.zerohop.spark.keeper.DaemonLink;
import io.zerohop.spark.keeper.DaemonLink.Answer;
import io.zerohop.spark.keeper.DaemonLink.Kind;
import io.zerohop.spark.keeper.KeeperShare;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Who would start a keeper here. */
class KeeperCheckTest {
  private static final Duration LIMIT = Duration.ofSeconds(20);

  @TempDir private Path scratch;

  private Finding look(final Map<String, String> more) {
    final Map<String, String> keys =
        new HashMap<>(Map.of("spark.zerohop.keeper.daemon", scratch.resolve("d").toString()));
    keys.putAll(more);
    return new KeeperCheck(Config.read(keys::get)).look();
  }

  @Test
  void aDaemonThatIsNamedAndNotThereIsAWarning() {
    final Finding finding = look(Map.of());
    assertThat(finding.verdict()).isEqualTo(Verdict.WARN);
    assertThat(finding.message().text())
        .contains("the first executor starts the keeper")
        .contains("run java -jar zerohop-spark.jar keeper");
  }

  @Test
  void withoutADaemonTheFirstExecutorStartsTheKeeper() {
    final Path usual = DaemonLink.folder(null);
    final Finding finding = look(Map.of("spark.zerohop.keeper.daemon", "auto"));
    assertThat(finding.verdict()).isEqualTo(Files.exists(usual) ? Verdict.WARN : Verdict.OK);
    assertThat(finding.message().text()).contains(usual.toString());
  }

  @Test
  void withoutThePathOfPeersThereIsNoKeeper() {
    final Finding finding = look(Map.of("spark.zerohop.paths", "local,staged"));
    assertThat(finding.verdict()).isEqualTo(Verdict.WARN);
    assertThat(finding.message().text()).contains("lacks peer");
  }

  @Test
  void theDaemonSaysWhatIsLeft() throws InterruptedException {
    final Finding some = with(new Answer(Kind.STATE, "0.3.0", 1000, 400, 2, 3, ""));
    assertThat(some.verdict()).isEqualTo(Verdict.OK);
    assertThat(some.message().text())
        .contains("release 0.3.0", "2 of 3 keepers", "400 of 1000 bytes left");
    final Finding none = with(new Answer(Kind.STATE, "", 1000, 0, 2, 3, ""));
    assertThat(none.verdict()).isEqualTo(Verdict.WARN);
    assertThat(none.message().text()).contains("starts none now").contains("raise --size");
    final Finding many = with(new Answer(Kind.STATE, "", 1000, 400, 3, 3, ""));
    assertThat(many.verdict()).isEqualTo(Verdict.WARN);
  }

  /** Looks at a daemon that says this. */
  private Finding with(final Answer answer) throws InterruptedException {
    final SocketFolder folder = SocketFolder.open(scratch.resolve("d"), KeeperShare.FOLDER);
    final int listener = folder.listen(DaemonLink.SOCKET, 1);
    final Thread server = new Thread(() -> serve(listener, answer));
    try {
      server.start();
      return look(Map.of());
    } finally {
      server.join();
      folder.unlink(DaemonLink.SOCKET);
      Descriptor.close(listener);
      folder.close();
    }
  }

  private static void serve(final int listener, final Answer answer) {
    final Deadline end = Deadline.in(LIMIT);
    int fd = -1;
    while (fd < 0 && !end.isOver()) {
      Sockets.poll(new int[] {listener}, new int[] {Sockets.READABLE}, 1, end.remainingMillis());
      fd = Sockets.accept(listener);
    }
    try (DaemonLink link = new DaemonLink(fd, end)) {
      assertThat(link.request()).isNull();
      link.answer(answer);
    }
  }
}
