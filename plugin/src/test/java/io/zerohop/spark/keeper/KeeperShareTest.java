package io.zerohop.spark.keeper;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.exchange.SocketFolder;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A keeper and its part of the daemon's limit. */
class KeeperShareTest {
  @TempDir private Path scratch;

  @Test
  void aShareIsOneKeepersAndGoesWithIt() throws Exception {
    final String name = KeeperShare.newName(123, 456);
    final KeeperShare share = new KeeperShare(scratch.resolve("d"), name, "", "/files");
    assertThat(KeeperShare.of(share.arguments().toArray(String[]::new))).isEqualTo(share);
    try (SocketFolder folder = SocketFolder.open(share.base(), KeeperShare.FOLDER)) {
      folder.offer(name);
      final KeeperShare.Held held = KeeperShare.take(share);
      assertThat(held).isNotNull();
      assertThat(KeeperShare.take(share)).isNull();
      assertThat(folder.claimOffered(name)).isNull();
      held.close();
      assertThat(folder.claims()).isEmpty();
      // One that the daemon has given away meanwhile is not made anew.
      assertThat(KeeperShare.take(share)).isNull();
      assertThat(folder.claims()).isEmpty();
    }
  }

  @Test
  void onlyNamesOfSharesHaveBytes() {
    final String name = KeeperShare.newName(1L << 40, 1L << 41);
    assertThat(KeeperShare.bytes(name)).isEqualTo(1L << 40);
    assertThat(KeeperShare.fileBytes(name)).isEqualTo(1L << 41);
    final String any = KeeperShare.newName(1, KeeperShare.UNLIMITED);
    assertThat(KeeperShare.fileBytes(any)).isEqualTo(KeeperShare.UNLIMITED);
    assertThat(KeeperShare.fileBytes("serving")).isEqualTo(-1);
    assertThat(KeeperShare.bytes("serving")).isEqualTo(-1);
    assertThat(KeeperShare.bytes("share-x-y-z")).isEqualTo(-1);
    assertThat(KeeperShare.bytes("share--1-y")).isEqualTo(-1);
    assertThat(KeeperShare.bytes("share-99999999999999999999-1-y")).isEqualTo(-1);
  }

  @Test
  void theFolderOfSocketsIsTheDaemonsWhereItSaysSo() {
    final Path set = Path.of("/run/zerohop");
    assertThat(new KeeperShare(scratch, "n", "", "").socketDir(set, "app-1")).isEqualTo(set);
    assertThat(new KeeperShare(scratch, "n", "/x/{app}", "").socketDir(set, "app-1"))
        .isEqualTo(Path.of("/x/app-1"));
  }
}
