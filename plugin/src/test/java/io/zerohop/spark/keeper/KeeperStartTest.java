package io.zerohop.spark.keeper;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.posix.NativeLibrary;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Where a keeper's log goes. Others may write to the folder that an executor works in. */
class KeeperStartTest {
  @TempDir private Path folder;

  @BeforeEach
  void load() {
    NativeLibrary.require();
  }

  @Test
  void theLogIsInAFolderOfThisUserAlone() throws IOException {
    final Path log = KeeperStart.logFile(folder);
    Files.writeString(log, "one");
    assertThat(KeeperStart.logFile(folder)).isEqualTo(log);
    assertThat(log).hasContent("one");
    assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(log.getParent())))
        .isEqualTo("rwx------");
  }

  @Test
  void aLinkIsNotFollowed() throws IOException {
    final Path precious = Files.writeString(folder.resolve("precious"), "mine");
    final Path elsewhere = Files.createDirectory(folder.resolve("elsewhere"));
    Files.createSymbolicLink(folder.resolve("zerohop-keeper"), elsewhere);
    assertThatThrownBy(() -> KeeperStart.logFile(folder)).isInstanceOf(IOException.class);
    assertThat(elsewhere).isEmptyDirectory();
    Files.delete(folder.resolve("zerohop-keeper"));
    final Path log = KeeperStart.logFile(folder);
    Files.delete(log);
    Files.createSymbolicLink(log, precious);
    assertThatThrownBy(() -> KeeperStart.logFile(folder)).isInstanceOf(IOException.class);
    assertThat(precious).hasContent("mine");
  }

  @Test
  void aFolderThatIsOpenToOthersIsRefused() throws IOException {
    final Path open = Files.createDirectory(folder.resolve("zerohop-keeper"));
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
    assertThatThrownBy(() -> KeeperStart.logFile(folder))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("this user alone");
  }
}
