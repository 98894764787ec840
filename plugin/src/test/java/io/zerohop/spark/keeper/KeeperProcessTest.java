package io.zerohop.spark.keeper;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.transport.ControlChannel;
import io.zerohop.shuffle.transport.samenode.LeftFolder;
import io.zerohop.shuffle.transport.ucx.LocalChannels;
import io.zerohop.spark.conf.ZerohopConf;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The port at which a keeper answers other nodes, and its directories for files. */
class KeeperProcessTest {
  private static final int TAKEN = 4711;
  private static final long MOST = Long.MAX_VALUE;

  private final List<Integer> tried = new ArrayList<>();

  private ControlChannel open(final int port) {
    tried.add(port);
    if (port == TAKEN) {
      throw new IllegalStateException("the port is taken");
    }
    return new LocalChannels().open(null);
  }

  @Test
  void thePortOfTheLastKeeperIsTriedFirst() {
    KeeperProcess.atLastPort(4712, 0, this::open).close();
    assertThat(tried).containsExactly(4712);
  }

  @Test
  void anotherPortIsTakenIfThatIsNotFree() {
    KeeperProcess.atLastPort(TAKEN, 0, this::open).close();
    assertThat(tried).containsExactly(TAKEN, 0);
  }

  @Test
  void withoutALastKeeperThePortIsAsConfigured() {
    KeeperProcess.atLastPort(0, 4713, this::open).close();
    assertThat(tried).containsExactly(4713);
    assertThatThrownBy(() -> KeeperProcess.atLastPort(0, TAKEN, this::open))
        .isInstanceOf(IllegalStateException.class);
  }

  @Test
  void filesNeedADirectoryAndRoomAndNoEncryption(@TempDir final Path dir) {
    final SparkConf spark = new SparkConf(false);
    final Config.Keeper auto = ZerohopConf.of(spark).keeper();
    final LeftFolder files = KeeperProcess.files(spark, auto, "/missing," + dir, MOST);
    assertThat(files).hasToString("[/missing, " + dir + "]");
    assertThat(files.limit()).isPositive();
    assertThat(KeeperProcess.files(spark, auto, "" + dir, 5).limit()).isEqualTo(5);
    assertThat(KeeperProcess.files(spark, auto, "" + dir, 0)).isNull();
    assertThat(KeeperProcess.files(spark, auto, "/missing", MOST).limit()).as("for now").isZero();
    assertThat(KeeperProcess.files(spark, auto, "", MOST)).isNull();
    final SparkConf none = spark.clone().set("spark.zerohop.keeper.files.size", "0");
    assertThat(KeeperProcess.files(none, ZerohopConf.of(none).keeper(), "" + dir, MOST)).isNull();
    final SparkConf some = spark.clone().set("spark.zerohop.keeper.files.size", "7m");
    assertThat(KeeperProcess.files(some, ZerohopConf.of(some).keeper(), "" + dir, MOST).limit())
        .isEqualTo(7 << 20);
    final SparkConf encrypted = spark.clone().set("spark.io.encryption.enabled", "true");
    assertThat(KeeperProcess.files(encrypted, auto, "" + dir, MOST)).isNull();
  }
}
