package io.zerohop.shuffle.fetch;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.route.PathChooser.Route;
import io.zerohop.shuffle.transport.Transport;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** How much one reader asks for at once. */
class BlockTransfersTest {
  private static final int OWNERS = 200;
  private static final Duration LIMIT = Duration.ofSeconds(10);
  private static final Route BY_UCX = new Route(BlockPath.UCX, null, null);

  private final Devices devices = new Devices(null);
  private final Fetches fetches =
      new Fetches(Config.defaults(), LIMIT, Clock.system(), devices, null, null, Map.of());
  private final Deque<Block> asked = new ArrayDeque<>();
  private Transport.Sink sink;
  private final BlockTransfers transfers =
      new BlockTransfers(
          new Reader(fetches, null, null, ReadSide.HOST, () -> false),
          Map.of(BlockPath.UCX, this::fetch),
          (source, block, cause, attempts) -> BlockPath.UCX);

  private void fetch(final BlockSource source, final List<Block> blocks, final Transport.Sink to) {
    asked.addAll(blocks);
    sink = to;
  }

  @AfterEach
  void close() {
    transfers.close();
    assertThat(fetches.reserved()).isZero();
    devices.close();
  }

  @Test
  void ofManyOwnersWithFewBytesSomeAreAskedAtATime() {
    for (int owner = 0; owner < OWNERS; owner++) {
      final List<Block> blocks =
          List.of(new Block(1, owner, owner, 0, 10), new Block(1, owner, owner, 1, 10));
      transfers.add(new BlockSource("" + owner, null, null, blocks), blocks, BY_UCX);
    }
    int read = 0;
    for (transfers.start(); !asked.isEmpty(); transfers.start()) {
      final int left = 2 * (OWNERS - read / 2);
      assertThat(asked.size())
          .as("blocks that are under way")
          .isBetween(
              Math.min(left, 2 * BlockTransfers.MAX_WINDOWS) - 1, 2 * BlockTransfers.MAX_WINDOWS);
      for (int i = 0; i < 2; i++) {
        sink.arrived(asked.poll(), new Received());
        assertThat(transfers.poll()).isNotNull();
        transfers.start();
        transfers.endReservation();
        read++;
      }
    }
    assertThat(read).isEqualTo(2 * OWNERS);
    assertThat(transfers.isWaiting()).isFalse();
  }

  @Test
  void whatFailsGivesItsPlaceBack() {
    for (int owner = 0; owner < OWNERS; owner++) {
      final List<Block> blocks = List.of(new Block(1, owner, owner, 0, 10));
      transfers.add(new BlockSource("" + owner, null, null, blocks), blocks, BY_UCX);
    }
    transfers.start();
    assertThat(asked).hasSize(BlockTransfers.MAX_WINDOWS);
    sink.failed(List.copyOf(asked), new IllegalStateException("a test wants it"));
    asked.clear();
    assertThat(transfers.poll()).isNull();
    transfers.start();
    assertThat(asked).hasSize(BlockTransfers.MAX_WINDOWS);
  }

  /** Some bytes that nobody looks at. */
  private static final class Received implements Transport.Payload {
    @Override
    public long bytes() {
      return 10;
    }

    @Override
    public InputStream open(final BooleanSupplier ended) {
      return InputStream.nullInputStream();
    }

    @Override
    public void release() {}
  }
}
