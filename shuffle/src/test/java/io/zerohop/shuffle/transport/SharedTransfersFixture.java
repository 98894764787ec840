package io.zerohop.shuffle.transport;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.TestBlocks;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import io.zerohop.shuffle.transport.Transport.Payload;
import io.zerohop.shuffle.transport.Transport.Sink;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;

/**
 * Transfers that are shared, over a transport whose blocks arrive when the test says so. At the end
 * nothing is open, and nothing is left.
 */
abstract class SharedTransfersFixture {
  static final int MOST = 2_000;
  static final List<Block> BLOCKS =
      TestBlocks.source("owner", null, 1, 1, 1, 1, 20, MOST).blocks().subList(0, 3);
  static final BlockSource SOURCE = source("owner");

  private static final Duration LONG = Duration.ofHours(1);

  private final Leaks leaks = new Leaks();
  final FakeStaging bytes = new FakeStaging(1, MOST);
  final HeldTransport network = new HeldTransport(bytes);
  SharedTransfers shared = sharing(network, LONG);

  static BlockSource source(final String owner) {
    return new BlockSource(owner, null, owner, BLOCKS);
  }

  private static SharedTransfers sharing(
      final FallbackTransport transport, final Duration patience) {
    return new SharedTransfers(
        transport, source -> !source.executorId().equals("self"), 2, patience, Clock.system());
  }

  void share(final FallbackTransport transport) {
    share(transport, LONG);
  }

  void share(final FallbackTransport transport, final Duration patience) {
    shared.close();
    shared = sharing(transport, patience);
  }

  @AfterEach
  void nothingIsLeft() {
    assertThat(shared.open()).isZero();
    shared.close();
    bytes.assertAllReleased();
    leaks.check();
  }

  static class Reader implements Sink {
    final Map<Block, Payload> arrived = new ConcurrentHashMap<>();
    final Map<Block, Throwable> failed = new ConcurrentHashMap<>();

    @Override
    public void arrived(final Block block, final Payload payload) {
      assertThat(arrived.put(block, payload)).isNull();
    }

    @Override
    public void failed(final Block block, final Throwable cause) {
      assertThat(failed.put(block, cause)).isNull();
    }

    void checkAndRelease(final int blocks) {
      assertThat(arrived).hasSize(blocks);
      assertThat(failed).isEmpty();
      arrived.forEach(SharedTransfersFixture::check);
      arrived.values().forEach(Payload::release);
      arrived.clear();
    }
  }

  static void check(final Block block, final Payload payload) {
    final byte[] expected =
        TestBlocks.block(block.shuffleId(), block.mapId(), 1, block.partition(), MOST);
    assertThat(payload.bytes()).isEqualTo(expected.length);
    try (InputStream in = payload.open(() -> false)) {
      assertThat(in.readAllBytes()).isEqualTo(expected);
    } catch (final IOException e) {
      throw new AssertionError(e);
    }
  }

  static void awaitOrFail(final CountDownLatch latch) {
    try {
      assertThat(latch.await(20, TimeUnit.SECONDS)).isTrue();
    } catch (final InterruptedException e) {
      throw new IllegalStateException("interrupted while connecting", e);
    }
  }
}
