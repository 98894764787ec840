package io.zerohop.shuffle.transport.remote;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.transport.remote.ServedReader.ServedLease;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class LeaseRoomTest {
  private static final int KIB = 1 << 10;

  /** Of an executor, if nothing is set. */
  private static final long HEAP = 1 << 30;

  private static void fill(final LeaseRoom.Share share, final int extents) {
    for (int i = 0; i < extents; i++) {
      share.takeExtent(i);
    }
  }

  /** A request for so many blocks, none of which is there. */
  private static ServedLease lease(final LeaseRoom room, final int blocks) {
    final ByteBuffer wanted = ByteBuffer.allocate(Integer.BYTES + 12 * blocks);
    wanted.putInt(blocks);
    for (int i = 0; i < blocks; i++) {
      wanted.putLong(i).putInt(0);
    }
    return ServedLease.of(RemoteServiceTest.NOTHING, 1, wanted.flip(), room, Clock.system());
  }

  private static void assertRefused(final Runnable asking, final String why) {
    assertThatThrownBy(asking::run)
        .isInstanceOf(ZerohopException.class)
        .hasMessageContaining(why)
        .extracting(failure -> ((ZerohopException) failure).category())
        .isEqualTo(ZerohopException.Category.RETRY);
  }

  @Test
  void oneLeaseHasAPartOfIt() {
    final LeaseRoom room = new LeaseRoom(1_000 * KIB, 100 * KIB, 4);
    final LeaseRoom.Share share = room.share();
    share.takeBlocks(2);
    assertRefused(() -> fill(share, 10_000), "too many pieces");
    assertThat(room.taken()).isBetween(90L * KIB, 100L * KIB);
    share.release();
    assertThat(room.taken()).isZero();
  }

  @Test
  void allTogetherHaveIt() {
    final LeaseRoom room = new LeaseRoom(100 * KIB, 30 * KIB, 4);
    final List<LeaseRoom.Share> shares = new ArrayList<>();
    assertRefused(
        () -> {
          for (int i = 0; i < 1_000; i++) {
            final LeaseRoom.Share share = room.share();
            shares.add(share);
            share.takeBlocks(1);
            fill(share, 100);
          }
        },
        "too many blocks of their owner");
    assertThat(room.taken()).isBetween(90L * KIB, 100L * KIB);
    shares.forEach(LeaseRoom.Share::release);
    assertThat(room.taken()).isZero();
  }

  @Test
  void aRequestThatIsRefusedTakesNothing() {
    final LeaseRoom room = new LeaseRoom(100 * KIB, 100 * KIB, 50);
    assertRefused(() -> lease(room, 51), "too many blocks: 51");
    assertThat(room.taken()).isZero();
    final ServedLease held = lease(room, 50);
    assertThat(room.taken()).isPositive();
    held.release();
    assertThat(room.taken()).isZero();
    final ByteBuffer cut = ByteBuffer.allocate(20).putInt(2).position(0);
    assertThatThrownBy(
            () -> ServedLease.of(RemoteServiceTest.NOTHING, 1, cut, room, Clock.system()))
        .isInstanceOf(IllegalArgumentException.class);
    assertThat(room.taken()).isZero();
  }

  /** Windows of blocks in some pieces each, of as many tasks as read one owner at a time. */
  @Test
  void readersHaveWhatTheyNeed() {
    final Config conf = Config.defaults();
    final LeaseRoom room = LeaseRoom.of(conf, HEAP);
    final LeaseRoom.Share large = room.share();
    large.takeBlocks(conf.fetch().windowBlocks());
    fill(large, 200 * conf.fetch().windowBlocks());
    large.release();
    for (int task = 0; task < 500; task++) {
      final LeaseRoom.Share share = room.share();
      share.takeBlocks(conf.fetch().windowBlocks());
      fill(share, conf.fetch().windowBlocks());
    }
  }

  /** Who reads larger windows than usual is not refused. */
  @Test
  void windowsOfAnySizeHaveRoom() {
    final int blocks = 1 << 20;
    final LeaseRoom.Share share =
        LeaseRoom.of(Config.defaults().with("fetch.window.blocks", blocks), HEAP).share();
    share.takeBlocks(blocks);
    fill(share, blocks);
  }
}
