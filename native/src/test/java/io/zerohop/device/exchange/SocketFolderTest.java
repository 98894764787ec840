package io.zerohop.device.exchange;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.zerohop.device.ChildJvm;
import io.zerohop.device.ContractPeer;
import io.zerohop.device.Leaks;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.host.HostUnderTest;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.NativeLibrary;
import io.zerohop.device.posix.Sockets;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Who may share a folder, and what is swept out of it. */
final class SocketFolderTest {
  private static final Duration LIMIT = Duration.ofSeconds(60);
  private static final Set<PosixFilePermission> PRIVATE =
      PosixFilePermissions.fromString("rwx------");

  @TempDir Path scratch;

  private Leaks leaks;
  private Path base;

  @BeforeEach
  void prepare() {
    NativeLibrary.require();
    leaks = new Leaks();
    base = scratch.resolve("s");
  }

  @AfterEach
  void nothingIsLeft() {
    leaks.check();
  }

  @Test
  void foldersArePrivateAndVanishWithTheirLastUser() throws Exception {
    final SocketFolder first = SocketFolder.open(base, "app");
    final SocketFolder second = SocketFolder.open(base, "app");
    for (final Path folder : List.of(base, first.path())) {
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(folder)))
          .isEqualTo("rwx------");
    }
    first.close();
    assertThat(second.path()).isDirectory();
    second.close();
    assertThat(base).doesNotExist();
  }

  private Path sharedPlace() throws IOException {
    final Path place = Files.createDirectory(scratch.resolve("shared"));
    Files.setAttribute(place, "unix:mode", 01777);
    return place;
  }

  private static SocketFolder find(final Path place, final String application) {
    return SocketFolder.open(place, application, SegmentTable.SECRET);
  }

  @Test
  void processesOfAnApplicationMeetInASharedPlaceAndOthersDoNot() throws Exception {
    final Path place = sharedPlace();
    try (SocketFolder one = find(place, "app");
        SocketFolder same = find(place, "app");
        SocketFolder other = find(place, "other");
        SocketFolder stranger =
            SocketFolder.open(place, "app", "another secret, 16".getBytes(US_ASCII))) {
      assertThat(one.identity()).isEqualTo(same.identity());
      assertThat(List.of(one.path(), other.path(), stranger.path())).doesNotHaveDuplicates();
      for (final SocketFolder each : List.of(one, other, stranger)) {
        final Path found = each.path().getParent();
        assertThat(found.getParent()).isEqualTo(place);
        assertThat(found.getFileName().toString())
            .matches("zerohop-" + Descriptor.userId() + "-[0-9a-f]{16}");
        assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(found)))
            .isEqualTo("rwx------");
      }
    }
    assertThat(place).isEmptyDirectory();
  }

  /** Only root can make a folder of another user's. */
  @Test
  void aNeighbourThatTakesTheFolderFirstKeepsNobodyOut() throws Exception {
    assumeTrue(Descriptor.userId() == 0, "NOTICE: skipped: folders of other users need root");
    final Path place = sharedPlace();
    final List<String> names = SharedPlaces.names("app", SegmentTable.SECRET);
    final Path taken = takenBy(place.resolve(names.get(0)), 61_531);
    try (SocketFolder one = find(place, "app");
        SegmentServer server = server(one, "server")) {
      assertThat(one.path().getParent()).isEqualTo(place.resolve(names.get(1)));
      server.start();
      Files.delete(taken); // What was made first stays the one.
      try (SocketFolder two = find(place, "app")) {
        assertThat(two.identity()).isEqualTo(one.identity());
        connect(two.socket("server"), "server").close();
      }
    }
    for (final String name : names) {
      takenBy(place.resolve(name), 61_532);
    }
    assertThatThrownBy(() -> find(place, "app").close())
        .isInstanceOf(ZerohopException.class)
        .hasMessageContaining("belongs to user 61532")
        .hasMessageContaining("spark.zerohop.socket.dir");
    find(place, "other").close();
  }

  private static Path takenBy(final Path folder, final int user) throws IOException {
    Files.createDirectory(folder, PosixFilePermissions.asFileAttribute(PRIVATE));
    Files.setAttribute(folder, "unix:uid", user);
    return folder;
  }

  @Test
  void aPlaceInWhichOthersMayRemoveIsRefused() throws Exception {
    final Path place = sharedPlace();
    Files.setAttribute(place, "unix:mode", 0777);
    assertThatThrownBy(() -> find(place, "app").close())
        .isInstanceOf(ZerohopException.class)
        .hasMessageContaining("chmod 700");
    if (Descriptor.userId() == 0) {
      Files.setAttribute(place, "unix:mode", 01777);
      Files.setAttribute(place, "unix:uid", 61_531);
      assertThatThrownBy(() -> find(place, "app").close())
          .isInstanceOf(ZerohopException.class)
          .hasMessageContaining("root's");
    }
  }

  @Test
  void whatAKilledApplicationLeftInASharedPlaceIsSwept() throws Exception {
    final Path place = sharedPlace();
    final Path left = place.resolve(SharedPlaces.names("gone", SegmentTable.SECRET).get(0));
    final Path socket = left.resolve("gone").resolve("dead");
    Files.createDirectory(left, PosixFilePermissions.asFileAttribute(PRIVATE));
    Files.createDirectory(socket.getParent(), PosixFilePermissions.asFileAttribute(PRIVATE));
    Descriptor.close(Sockets.listen(socket.toString(), 1));
    try (SocketFolder live = find(place, "live");
        SocketFolder next = find(place, "next")) {
      next.sweep();
      assertThat(left).doesNotExist();
      assertThat(live.path()).isDirectory();
    }
  }

  @Test
  void identityTellsFoldersApart() throws Exception {
    final Path alias = Files.createSymbolicLink(scratch.resolve("alias"), scratch);
    try (SocketFolder one = SocketFolder.open(base, "one");
        SocketFolder same = SocketFolder.open(alias.resolve("s"), "one");
        SocketFolder other = SocketFolder.open(base, "two")) {
      assertThat(one.identity()).hasSize(16).isEqualTo(same.identity());
      assertThat(other.identity()).isNotEqualTo(one.identity());
    }
  }

  @Test
  void foldersThatOthersMayAccessAreRefused() throws Exception {
    Files.createDirectory(base);
    for (final String mode : List.of("rwxr-x---", "rwx---r--", "rwxrwxrwx")) {
      Files.setPosixFilePermissions(base, PosixFilePermissions.fromString(mode));
      assertRefused(base, "chmod 700");
    }
    Files.setPosixFilePermissions(base, PosixFilePermissions.fromString("rwx------"));
    Files.createDirectory(base.resolve("app"));
    Files.setPosixFilePermissions(
        base.resolve("app"), PosixFilePermissions.fromString("rwxr-xr-x"));
    assertRefused(base, "chmod 700");
  }

  @Test
  void linksAndFilesAreRefused() throws Exception {
    final Path real = Files.createDirectory(scratch.resolve("real"));
    Files.setPosixFilePermissions(real, PosixFilePermissions.fromString("rwx------"));
    assertRefused(Files.createSymbolicLink(scratch.resolve("link"), real), "symbolic link");
    assertRefused(Files.createFile(scratch.resolve("file")), "no folder");
    assertRefused(scratch.resolve("missing").resolve("deep"), "spark.zerohop.socket.dir");
    Files.createSymbolicLink(real.resolve("app"), scratch);
    assertRefused(real, "symbolic link");
  }

  private static void assertRefused(final Path base, final String reason) {
    assertThatThrownBy(() -> SocketFolder.open(base, "app").close())
        .isInstanceOfSatisfying(
            ZerohopException.class,
            e -> assertThat(e.category()).isEqualTo(ZerohopException.Category.FALLBACK))
        .hasMessageContaining(reason);
  }

  /** A container's folder on YARN: longer than a socket's path may be. */
  @Test
  void longPathsAreServed() throws Exception {
    final Path container =
        scratch.resolve(
            "yarn/nm-local-dir/usercache/some.user/appcache/application_1700000000000_0001"
                + "/container_e17_1700000000000_0001_01_000002/tmp");
    Files.createDirectories(container);
    try (SocketFolder folder =
            SocketFolder.open(container.resolve("s"), "application_1700000000000_0001");
        SegmentServer server = server(folder, "1-0123456789abcdef")) {
      server.start();
      assertThat(server.socket().toString()).hasSizeGreaterThan(200);
      connect(server.socket(), "1-0123456789abcdef").close();
      folder.sweep();
      assertThat(folder.sockets()).containsExactly("1-0123456789abcdef");
      final Path none = folder.socket("none");
      assertThatThrownBy(() -> connect(none, "none"))
          .isInstanceOfSatisfying(
              ExchangeException.class, e -> assertThat(e.reason()).isEqualTo(Reason.ABSENT));
    }
    assertThat(container).isEmptyDirectory();
  }

  @Test
  void namesAreNoPaths() {
    for (final String name : List.of("", ".", "..", ".new", "a/b", "a b", "x".repeat(65), "ü")) {
      assertThatThrownBy(() -> SocketFolder.open(base, name))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  void theSocketOfAKilledProcessIsSwept() throws Exception {
    try (ChildJvm child =
        ChildJvm.start(
            List.of(),
            ContractPeer.class,
            "export",
            HostUnderTest.class.getName(),
            base.toString())) {
      assertThat(child.line()).isEqualTo("ready");
      try (SocketFolder mine = SocketFolder.open(base, "app");
          SocketFolder other = SocketFolder.open(base, "other")) {
        mine.sweep();
        other.sweep();
        assertThat(mine.socket("child")).exists();
        child.kill();
        assertThat(mine.socket("child")).exists();
        assertThatThrownBy(() -> connect(mine.socket("child"), "child"))
            .isInstanceOfSatisfying(
                ExchangeException.class, e -> assertThat(e.reason()).isEqualTo(Reason.REFUSED));
        other.sweep();
        assertThat(mine.socket("child")).as("in a folder of a live application").exists();
        mine.sweep();
        assertThat(mine.socket("child")).doesNotExist();
        assertThat(mine.path()).isDirectory();
      }
      assertThat(base).doesNotExist();
    }
  }

  /** Leaves the folder and the socket of another process that served and was killed. */
  private void killAServer() throws Exception {
    try (ChildJvm child =
        ChildJvm.start(
            List.of(),
            ContractPeer.class,
            "export",
            HostUnderTest.class.getName(),
            base.toString())) {
      assertThat(child.line()).isEqualTo("ready");
      child.kill();
    }
  }

  @Test
  void theFolderOfADeadApplicationIsSweptWithItsFiles() throws Exception {
    killAServer();
    assertThat(base.resolve("app").resolve("child")).exists();
    try (SocketFolder next = SocketFolder.open(base, "next")) {
      final Path kept = Files.createFile(next.path().resolve("file"));
      next.sweep();
      assertThat(base.resolve("app")).doesNotExist();
      assertThat(kept).exists();
      Files.delete(kept);
    }
  }

  @Test
  void aNewServerTakesTheNameOfADeadOne() throws Exception {
    killAServer();
    try (SocketFolder folder = SocketFolder.open(base, "app");
        SegmentServer server = server(folder, "child")) {
      server.start();
      connect(server.socket(), "child").close();
    }
  }

  @Test
  void startsSweepsAndEndsDoNotDisturbOneAnother() {
    final List<CompletableFuture<Void>> processes = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      final int number = i;
      processes.add(
          CompletableFuture.runAsync(
              () -> {
                for (int round = 0; round < 40; round++) {
                  liveOnce("app-" + (number + round) % 3, "executor-" + number);
                }
              }));
    }
    processes.forEach(CompletableFuture::join);
    assertThat(base).doesNotExist();
  }

  private void liveOnce(final String application, final String name) {
    try (SocketFolder folder = SocketFolder.open(base, application);
        SegmentServer server = server(folder, name)) {
      folder.sweep();
      server.start();
      folder.sweep();
      connect(server.socket(), name).close();
    }
  }

  /** Whoever has the same uid may hold the locks, or be stopped while it does. */
  @Test
  void aNeighbourThatHoldsTheLocksHoldsNobodyUp() throws Exception {
    final List<Integer> held = new ArrayList<>();
    for (final Path folder : List.of(base, base.resolve("app"))) {
      Files.createDirectory(folder, PosixFilePermissions.asFileAttribute(PRIVATE));
      final int fd = Descriptor.openFolder(folder.toString());
      held.add(fd);
      assertThat(Descriptor.tryLock(fd, false)).isTrue();
    }
    try (SocketFolder first = SocketFolder.open(base, "app");
        SegmentServer server = server(first, "server")) {
      first.sweep();
      server.start();
      try (SocketFolder second = SocketFolder.open(base, "app")) {
        assertThat(second.identity()).isEqualTo(first.identity());
        second.sweep();
        connect(second.socket("server"), "server").close();
      }
    } finally {
      held.forEach(Descriptor::close);
    }
  }

  @Test
  void aFolderThatWasRemovedIsNotListenedIn() throws Exception {
    try (SocketFolder folder = SocketFolder.open(base, "app");
        SegmentServer server = server(folder, "server")) {
      Files.delete(folder.path());
      assertThatThrownBy(server::start)
          .isInstanceOfSatisfying(
              ZerohopException.class,
              e -> assertThat(e.category()).isEqualTo(ZerohopException.Category.RETRY))
          .hasMessageContaining("spark.zerohop.socket.dir");
    }
  }

  /** Between its making and its name a socket does not listen: no sweep may take it away. */
  @Test
  void aSocketWithoutANameGoesWithTheLastUserOfItsFolder() throws Exception {
    try (SocketFolder one = SocketFolder.open(base, "app")) {
      final Path hidden = one.path().resolve(".0123abc");
      final Path named = one.path().resolve("dead");
      for (final Path socket : List.of(hidden, named)) {
        Descriptor.close(Sockets.listen(socket.toString(), 1));
      }
      try (SocketFolder two = SocketFolder.open(base, "app")) {
        two.sweep();
        assertThat(named).doesNotExist();
      }
      assertThat(hidden).exists();
      assertThat(one.sockets()).isEmpty();
    }
    assertThat(base).doesNotExist();
  }

  private static SegmentServer server(final SocketFolder folder, final String name) {
    return new SegmentServer(
        folder, name, SegmentTable.SECRET, new SegmentTable(), SegmentServer.Limits.DEFAULT);
  }

  private static PeerLink connect(final Path socket, final String peer) {
    return PeerLink.connect(socket, "client", peer, SegmentTable.SECRET, LIMIT);
  }

  /** Who sweeps may be slow: the next process of that name has its socket there by then. */
  @Test
  void aSocketWhoseNameIsClaimedIsNotSwept() throws Exception {
    try (SocketFolder folder = SocketFolder.open(base, "app");
        SocketFolder sweeper = SocketFolder.open(base, "app")) {
      final Path claimed = folder.socket("one");
      for (final Path socket : List.of(claimed, folder.socket("two"))) {
        Descriptor.close(Sockets.listen(socket.toString(), 1));
      }
      // As a process that was killed leaves it.
      Files.createDirectory(
          folder.path().resolve(".one"), PosixFilePermissions.asFileAttribute(PRIVATE));
      sweeper.sweep();
      assertThat(sweeper.sockets()).containsExactly("one");
      final SocketFolder.Claim claim = folder.claim("one");
      sweeper.sweep();
      assertThat(claimed).exists();
      try (SegmentServer server = server(folder, "one")) {
        server.start();
        sweeper.sweep();
        connect(claimed, "one").close();
      }
      Descriptor.close(Sockets.listen(claimed.toString(), 1));
      claim.close();
      claim.close();
      assertThat(claimed).doesNotExist();
    }
    assertThat(base).doesNotExist();
  }

  /** Also where a killed process has left a socket of that name, and its claim. */
  @Test
  void aNameIsClaimedByOneAtATime() throws Exception {
    final int claimants = 8;
    try (SocketFolder folder = SocketFolder.open(base, "app")) {
      Files.createDirectory(
          folder.path().resolve(".one"), PosixFilePermissions.asFileAttribute(PRIVATE));
      for (int round = 0; round < 50; round++) {
        final List<CompletableFuture<SocketFolder.Claim>> all = new ArrayList<>();
        for (int i = 0; i < claimants; i++) {
          all.add(CompletableFuture.supplyAsync(() -> folder.claim("one")));
        }
        final List<SocketFolder.Claim> got = new ArrayList<>();
        for (final CompletableFuture<SocketFolder.Claim> one : all) {
          if (one.get() != null) {
            got.add(one.get());
          }
        }
        assertThat(got).hasSize(1);
        assertThat(folder.claim("one")).isNull();
        got.get(0).close();
      }
      Files.createDirectory(
          folder.path().resolve(".left"), PosixFilePermissions.asFileAttribute(PRIVATE));
    }
    assertThat(base).doesNotExist();
  }
}
