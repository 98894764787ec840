package io.zerohop.spark.keeperdaemon;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.zerohop.device.ChildJvm;
import io.zerohop.device.Leaks;
import io.zerohop.device.TestClock;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.posix.Deadline;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.NativeLibrary;
import io.zerohop.spark.keeper.DaemonLink;
import io.zerohop.spark.keeper.DaemonLink.Answer;
import io.zerohop.spark.keeper.DaemonLink.Kind;
import io.zerohop.spark.keeper.KeeperShare;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Who gets a keeper of the daemon, how large, and of what; its keepers are shells. */
class KeeperDaemonTest {
  private static final Duration LIMIT = Duration.ofSeconds(20);
  private static final long MIB = 1L << 20;
  private static final byte[] ORDERS = {1, 2, 3};
  private static final int VERSION_AT = 4;

  /** A STATUS. */
  private static final byte[] QUESTION = {0x5A, 0x48, 0x4B, 0x44, 1, 0, 0, 0, 0, 0};

  @TempDir private Path scratch;

  private final TestClock clock = TestClock.running();
  private final List<Process> started = new CopyOnWriteArrayList<>();
  private final List<String> classPaths = new CopyOnWriteArrayList<>();
  private final List<String> log = new CopyOnWriteArrayList<>();
  private final KeeperDaemon.Limits limits =
      new KeeperDaemon.Limits(1000 * MIB, KeeperShare.UNLIMITED, 3, 10);
  private Path base;
  private Path jar;
  private String keeper = "cat > /dev/null; exec sleep 300";

  @BeforeEach
  void prepare() throws IOException {
    NativeLibrary.require();
    base = scratch.resolve("daemon");
    jar = Files.createFile(scratch.resolve("zerohop.jar"));
    Files.setPosixFilePermissions(jar, PosixFilePermissions.fromString("rw-r--r--"));
  }

  @AfterEach
  void end() throws InterruptedException {
    for (final Process process : started) {
      kill(process);
    }
  }

  private static void kill(final Process process) throws InterruptedException {
    process.destroyForcibly();
    assertThat(process.waitFor(20, TimeUnit.SECONDS)).isTrue();
  }

  private KeeperDaemon daemon() {
    return daemon(limits, List.of());
  }

  private KeeperDaemon daemon(final KeeperDaemon.Limits with, final List<Path> jars) {
    return KeeperDaemon.open(
        base,
        with,
        new KeeperDaemon.Rules(jars, "", "/files"),
        (classPath, share) -> {
          final Process process = new ProcessBuilder("sh", "-c", keeper).start();
          started.add(process);
          classPaths.add(classPath);
          return process;
        },
        clock,
        line -> log.add(line.text()));
  }

  private Answer start(final int application, final long bytes) {
    return start(application, bytes, jar.toString(), ORDERS);
  }

  private Answer start(
      final int application, final long bytes, final String classPath, final byte[] orders) {
    return start(application, bytes, -1, classPath, orders);
  }

  private Answer start(
      final int application,
      final long bytes,
      final long fileBytes,
      final String classPath,
      final byte[] orders) {
    final byte[] name = new byte[32];
    name[0] = (byte) application;
    return DaemonLink.ask(
        base, new DaemonLink.Start(bytes, fileBytes, name, classPath, orders.clone()), LIMIT);
  }

  private Answer status() {
    return DaemonLink.ask(base, null, LIMIT);
  }

  @Test
  void allKeepersTogetherStayWithinOneLimit() throws Exception {
    final Leaks leaks = new Leaks();
    try (KeeperDaemon daemon = daemon()) {
      assertThat(start(1, 700 * MIB).text()).contains("at most " + 700 * MIB + " bytes");
      assertThat(start(2, 700 * MIB).text()).contains("at most " + 300 * MIB + " bytes");
      final Answer third = start(3, 700 * MIB);
      assertThat(third.kind()).isEqualTo(Kind.FULL);
      assertThat(third.text()).contains("0 of " + 1000 * MIB + " bytes are left");
      assertThat(status().left()).isZero();
      kill(started.get(0));
      assertThat(status().left()).isEqualTo(700 * MIB);
      assertThat(start(3, 700 * MIB).kind()).isEqualTo(Kind.STARTED);
      assertThat(daemon).isNotNull();
    }
    leaks.check();
  }

  @Test
  void filesOfAllKeepersTogetherStayWithinOneLimit() throws Exception {
    final KeeperDaemon.Limits limited = new KeeperDaemon.Limits(1000 * MIB, 900 * MIB, 9, 20);
    final KeeperDaemon first = daemon(limited, List.of());
    assertThat(startWithFiles(1, 200 * MIB).text()).contains(200 * MIB + " of files");
    assertThat(startWithFiles(2, -1).text()).contains(350 * MIB + " of files");
    assertThat(startWithFiles(3, 900 * MIB).text()).contains(350 * MIB + " of files");
    assertThat(startWithFiles(4, -1).text()).contains(", 0 of files");
    kill(started.get(1));
    assertThat(startWithFiles(5, 900 * MIB).text()).contains(350 * MIB + " of files");
    try (SocketFolder folder = SocketFolder.open(base, KeeperShare.FOLDER)) {
      final String share =
          folder.claims().stream()
              .filter(name -> KeeperShare.fileBytes(name) == 200 * MIB)
              .findFirst()
              .orElseThrow();
      final SocketFolder.Claim held = folder.claimOffered(share); // As that keeper does.
      assertThat(held).isNotNull();
      first.close();
      try (KeeperDaemon second = daemon(limited, List.of())) {
        assertThat(startWithFiles(6, 900 * MIB).text()).contains(700 * MIB + " of files");
        held.close();
        assertThat(startWithFiles(7, 900 * MIB).text()).contains(200 * MIB + " of files");
        assertThat(second).isNotNull();
      }
    }
  }

  private Answer startWithFiles(final int application, final long fileBytes) {
    return start(application, 100 * MIB, fileBytes, jar.toString(), ORDERS);
  }

  @Test
  void whoNamesNoSizeGetsHalfOfWhatIsLeft() {
    try (KeeperDaemon daemon = daemon()) {
      assertThat(start(1, -1).text()).contains("at most " + 500 * MIB + " bytes");
      assertThat(start(2, -1).text()).contains("at most " + 250 * MIB + " bytes");
      assertThat(status().left()).isEqualTo(250 * MIB);
      assertThat(status().keepers()).isEqualTo(2);
      assertThat(daemon).isNotNull();
    }
  }

  @Test
  void anApplicationHasOneKeeperAndTheNodeAsManyAsAreAllowed() {
    try (KeeperDaemon daemon = daemon()) {
      assertThat(start(1, 100 * MIB).kind()).isEqualTo(Kind.STARTED);
      assertThat(start(1, 100 * MIB).kind()).isEqualTo(Kind.RUNNING);
      assertThat(start(2, 100 * MIB).kind()).isEqualTo(Kind.STARTED);
      assertThat(start(3, 100 * MIB).kind()).isEqualTo(Kind.STARTED);
      final Answer fourth = start(4, 100 * MIB);
      assertThat(fourth.kind()).isEqualTo(Kind.FULL);
      assertThat(fourth.text()).contains("--keepers");
      assertThat(started).hasSize(3);
      assertThat(daemon).isNotNull();
    }
  }

  @Test
  void startsAreLimitedWithinAMinute() throws Exception {
    try (KeeperDaemon daemon =
        daemon(new KeeperDaemon.Limits(1000 * MIB, KeeperShare.UNLIMITED, 3, 2), List.of())) {
      for (int i = 0; i < 2; i++) {
        assertThat(start(i, 100 * MIB).kind()).isEqualTo(Kind.STARTED);
        kill(started.get(i));
      }
      final Answer third = start(3, 100 * MIB);
      assertThat(third.kind()).isEqualTo(Kind.FULL);
      assertThat(third.text()).contains("--starts");
      clock.advance(Duration.ofMinutes(1));
      assertThat(start(3, 100 * MIB).kind()).isEqualTo(Kind.STARTED);
      assertThat(daemon).isNotNull();
    }
  }

  @Test
  void aClassPathThatOthersCanChangeIsRefused() throws IOException {
    try (KeeperDaemon daemon = daemon()) {
      Files.setPosixFilePermissions(jar, PosixFilePermissions.fromString("rw-rw-rw-"));
      assertRefused(jar.toString(), "can be written by others");
      final Path open = Files.createDirectory(scratch.resolve("open"));
      Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
      final Path inOpen = Files.createFile(open.resolve("a.jar"));
      Files.setPosixFilePermissions(inOpen, PosixFilePermissions.fromString("rw-r--r--"));
      assertRefused(inOpen.toString(), "can be written by others");
      final Path good = Files.createFile(scratch.resolve("good.jar"));
      Files.setPosixFilePermissions(good, PosixFilePermissions.fromString("rw-r--r--"));
      assertRefused(good + ":" + inOpen, "can be written by others");
      final Path link = Files.createSymbolicLink(scratch.resolve("link.jar"), inOpen);
      assertRefused(link.toString(), "can be written by others");
      assertRefused(scratch.resolve("absent.jar").toString(), "absent.jar");
      assertRefused("\0", "");
      assertThat(daemon).isNotNull();
    }
  }

  @Test
  void aFolderThatOthersCanChangeIsLeftOut() throws IOException {
    final Path open = Files.createDirectory(scratch.resolve("open"));
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
    final Path conf = Files.createDirectory(scratch.resolve("conf"));
    Files.setPosixFilePermissions(conf, PosixFilePermissions.fromString("rwxr-xr-x"));
    try (KeeperDaemon daemon = daemon()) {
      assertRefused(open + ":" + jar, "can be written by others");
      final String all = jar + ":" + open + ":" + conf + ":" + scratch.resolve("absent");
      assertThat(start(1, 100 * MIB, all, ORDERS).kind()).isEqualTo(Kind.STARTED);
      assertThat(classPaths).containsExactly(jar.toRealPath() + ":" + conf.toRealPath());
      assertThat(daemon).isNotNull();
    }
  }

  @Test
  void aClassPathOfAnotherUserIsRefused() throws IOException {
    assumeTrue(Descriptor.userId() == 0, "NOTICE: skipped: files of other users need root");
    Files.setAttribute(jar, "unix:uid", 65534);
    try (KeeperDaemon daemon = daemon()) {
      assertRefused(jar.toString(), "belongs to user 65534");
      assertThat(daemon).isNotNull();
    }
  }

  @Test
  void aClassPathOutsideOfTheFoldersOfJarsIsRefused() throws IOException {
    final Path jars = Files.createDirectory(scratch.resolve("jars"));
    final Path inside = Files.copy(jar, jars.resolve("a.jar"));
    try (KeeperDaemon daemon = daemon(limits, List.of(jars.toRealPath()))) {
      assertRefused(jar.toString(), "in no folder of --jars");
      assertRefused(jars.resolve("../zerohop.jar").toString(), "in no folder of --jars");
      final Answer answer = start(1, 100 * MIB, inside.toString(), ORDERS);
      assertThat(answer.kind()).isEqualTo(Kind.STARTED);
      assertThat(daemon).isNotNull();
    }
  }

  /** Java would run what lies in the daemon's own directory. */
  @Test
  void aClassPathWithoutEntriesIsRefused() throws IOException {
    try (KeeperDaemon daemon = daemon(limits, List.of())) {
      assertRefused("", "it is empty");
      assertRefused("::", "it is empty");
      assertThat(daemon).isNotNull();
    }
  }

  /** A million entries would not fit into the daemon's heap. */
  @Test
  void aClassPathThatIsTooLongIsRefusedBeforeItIsLookedAt() throws IOException {
    try (KeeperDaemon daemon = daemon(limits, List.of())) {
      assertRefused("a:".repeat(100_000), "a class path of 200000 bytes");
      assertThat(daemon).isNotNull();
    }
  }

  private void assertRefused(final String classPath, final String why) {
    final int before = started.size();
    if (classPath.equals("\0")) {
      assertThatThrownBy(() -> start(1, 100 * MIB, classPath, ORDERS))
          .isInstanceOf(ZerohopException.class);
    } else {
      final Answer answer = start(1, 100 * MIB, classPath, ORDERS);
      assertThat(answer.kind()).isEqualTo(Kind.REFUSED);
      assertThat(answer.text()).contains(why);
    }
    assertThat(started).hasSize(before);
    awaitLine("ZH-1016");
    log.clear();
  }

  /** It may come after the answer, and after the end of the connection. */
  private void awaitLine(final String text) {
    final Deadline end = Deadline.in(LIMIT);
    assertThat(end.await(() -> log.stream().anyMatch(it -> it.contains(text)), it -> pause()))
        .as("%s in %s", text, log)
        .isTrue();
  }

  private static void pause() throws InterruptedException {
    Thread.sleep(2);
  }

  @Test
  void anotherVersionIsRefusedOnBothSidesWithARemedy() throws Exception {
    try (KeeperDaemon daemon = daemon();
        SocketChannel newer = connect()) {
      final byte[] question = QUESTION.clone();
      question[VERSION_AT] = 2;
      newer.write(ByteBuffer.wrap(question));
      final ByteBuffer answer = ByteBuffer.allocate(4096);
      while (newer.read(answer) >= 0) {
        assertThat(answer.hasRemaining()).isTrue();
      }
      assertThat(answer.get(VERSION_AT)).isEqualTo((byte) 1);
      assertThat(answer.get(VERSION_AT + 1)).isEqualTo((byte) Kind.REFUSED.ordinal());
      assertThat(new String(answer.array(), 0, answer.position(), "ISO-8859-1"))
          .contains("version 2")
          .contains("jars of one release");
      assertThat(daemon).isNotNull();
    }
    try (ServerSocketChannel newer = servedBy()) {
      final Thread server =
          new Thread(
              () -> {
                try (SocketChannel link = newer.accept()) {
                  final byte[] answer = QUESTION.clone();
                  answer[VERSION_AT] = 2;
                  link.write(ByteBuffer.wrap(answer));
                  link.read(ByteBuffer.allocate(64));
                } catch (final IOException e) {
                  throw new AssertionError(e);
                }
              });
      server.start();
      assertThatThrownBy(this::status)
          .isInstanceOfSatisfying(
              ZerohopException.class,
              e -> assertThat(e.message().remedy()).contains("jars of one release"))
          .hasMessageContaining("version 2");
      server.join();
    }
  }

  /** A socket in the daemon's place. */
  private ServerSocketChannel servedBy() throws IOException {
    Files.createDirectory(
        base, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    Files.createDirectory(
        base.resolve(KeeperShare.FOLDER),
        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    return ServerSocketChannel.open(StandardProtocolFamily.UNIX).bind(address());
  }

  private SocketChannel connect() throws IOException {
    return SocketChannel.open(address());
  }

  private UnixDomainSocketAddress address() {
    return UnixDomainSocketAddress.of(base.resolve(KeeperShare.FOLDER).resolve(DaemonLink.SOCKET));
  }

  @Test
  void anExecutorThatHangsInItsRequestHoldsNobodyUp() throws Exception {
    try (KeeperDaemon daemon = daemon();
        SocketChannel hung = connect();
        SocketChannel noise = connect()) {
      hung.write(ByteBuffer.wrap(QUESTION, 0, 7));
      noise.write(ByteBuffer.wrap(new byte[100]));
      assertThat(start(1, 100 * MIB).kind()).isEqualTo(Kind.STARTED);
      final ByteBuffer answer = ByteBuffer.allocate(4096);
      while (hung.read(answer) >= 0) {
        assertThat(answer.hasRemaining()).isTrue();
      }
      awaitLine("did not go on in time");
      awaitLine("bytes of another protocol");
      assertThat(daemon).isNotNull();
    }
  }

  @Test
  void aDaemonThatDoesNotAnswerIsGivenUp() throws IOException {
    try (ServerSocketChannel silent = servedBy()) {
      assertThatThrownBy(() -> DaemonLink.ask(base, null, Duration.ofMillis(50)))
          .isInstanceOf(ZerohopException.class)
          .hasMessageContaining("in time");
      assertThat(silent.isOpen()).isTrue();
    }
    assertThatThrownBy(this::status).hasMessageContaining("no daemon answers");
  }

  @Test
  void aKeeperThatDoesNotReadItsOrdersIsEnded() throws Exception {
    keeper = "exec sleep 300";
    try (KeeperDaemon daemon = daemon()) {
      assertThat(start(1, 100 * MIB, jar.toString(), new byte[256 << 10]).kind())
          .isEqualTo(Kind.STARTED);
      clock.advance(Duration.ofMinutes(1));
      assertThat(started.get(0).waitFor(20, TimeUnit.SECONDS)).isTrue();
      assertThat(status().keepers()).isZero();
      assertThat(daemon).isNotNull();
    }
  }

  @Test
  void aLaterDaemonCountsTheKeepersOfAnEarlierOne() {
    final KeeperDaemon first = daemon();
    assertThat(start(1, 300 * MIB).kind()).isEqualTo(Kind.STARTED);
    assertThat(start(2, 400 * MIB).kind()).isEqualTo(Kind.STARTED);
    try (SocketFolder folder = SocketFolder.open(base, KeeperShare.FOLDER)) {
      final String share =
          folder.claims().stream()
              .filter(name -> KeeperShare.bytes(name) == 300 * MIB)
              .findFirst()
              .orElseThrow();
      // As the keeper does it. The other one is killed before it has come so far.
      final SocketFolder.Claim held = folder.claimOffered(share);
      assertThat(held).isNotNull();
      first.close();
      assertThatThrownBy(this::status).hasMessageContaining("no daemon answers");
      assertThat(started).allMatch(Process::isAlive);
      try (KeeperDaemon second = daemon()) {
        assertThat(status().keepers()).isEqualTo(1);
        assertThat(status().left()).isEqualTo(700 * MIB);
        assertThat(start(3, 800 * MIB).text()).contains("at most " + 700 * MIB);
        held.close();
        assertThat(status().left()).isEqualTo(300 * MIB);
        assertThat(second).isNotNull();
      }
    }
  }

  /** As where no descriptor is left: some may be held that it does not know. */
  @Test
  void aDaemonThatCannotListItsSharesGivesNone() throws IOException {
    try (KeeperDaemon daemon = daemon()) {
      assertThat(start(1, 300 * MIB).kind()).isEqualTo(Kind.STARTED);
      final Path usual = base;
      base =
          Files.createDirectory(
              scratch.resolve("elsewhere"),
              PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
      Files.move(usual.resolve(KeeperShare.FOLDER), base.resolve(KeeperShare.FOLDER));
      final Answer answer = start(2, 100 * MIB);
      assertThat(answer.kind()).isEqualTo(Kind.FULL);
      assertThat(answer.text()).contains("cannot list a folder", "ulimit -n");
      assertThat(started).hasSize(1);
      assertThat(status().left()).isZero();
      assertThat(status().keepers()).isEqualTo(1);
      assertThat(status().text()).contains("cannot list a folder");
      awaitLine("ZH-1016");
      Files.move(base.resolve(KeeperShare.FOLDER), usual.resolve(KeeperShare.FOLDER));
      base = usual;
      assertThat(status().left()).isEqualTo(700 * MIB);
      assertThat(start(2, 100 * MIB).kind()).isEqualTo(Kind.STARTED);
      assertThat(daemon).isNotNull();
    }
  }

  @Test
  void oneDaemonServesAFolder() {
    try (KeeperDaemon daemon = daemon()) {
      assertThatThrownBy(this::daemon).hasMessageContaining("another daemon serves here");
      assertThat(status().kind()).isEqualTo(Kind.STATE);
      assertThat(daemon).isNotNull();
    }
    daemon().close();
  }

  @Test
  void aFolderThatIsOpenToOthersIsRefusedByBothSides() throws IOException {
    Files.createDirectory(base);
    Files.setPosixFilePermissions(base, PosixFilePermissions.fromString("rwxr-xr-x"));
    assertThatThrownBy(this::daemon).hasMessageContaining("chmod 700");
    assertThatThrownBy(this::status).hasMessageContaining("chmod 700");
  }

  @Test
  void anotherUserIsRefusedBeforeItSaysAnything() throws Exception {
    assumeTrue(
        Descriptor.userId() == 0 && Files.isExecutable(Path.of("/usr/bin/setpriv")),
        "NOTICE: skipped: other users can only be tried as root with setpriv (util-linux)");
    final List<String> asOther =
        List.of(
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=+dac_override",
            "--ambient-caps=+dac_override");
    try (KeeperDaemon daemon = daemon();
        ChildJvm other = ChildJvm.start(asOther, OtherUser.class, address().getPath().toString())) {
      assertThat(other.line()).isEqualTo("closed");
      awaitLine("is of user 65534");
      assertThat(daemon).isNotNull();
    }
  }

  /** Asks as another user, and says what comes. */
  public static final class OtherUser {
    private OtherUser() {}

    public static void main(final String[] arguments) throws IOException {
      try (SocketChannel link = SocketChannel.open(UnixDomainSocketAddress.of(arguments[0]))) {
        link.write(ByteBuffer.wrap(QUESTION));
        System.out.println(link.read(ByteBuffer.allocate(64)) < 0 ? "closed" : "answered");
      } catch (final IOException e) {
        System.out.println("closed"); // While it wrote, or with bytes unread.
      }
    }
  }
}
