package io.zerohop.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Leaks;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.TestClock;
import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.exchange.SocketFolder;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.keeper.Keeper;
import io.zerohop.shuffle.keeper.KeptTransport;
import io.zerohop.shuffle.transport.FakeStaging;
import io.zerohop.shuffle.transport.Transport;
import io.zerohop.shuffle.transport.ucx.LocalChannels;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Readers of other nodes that ask a keeper for blocks of an executor that lives, and gave none. The
 * keeper's clock stands, so that it says nothing because a time is over.
 */
@Timeout(120)
class KeeperLivingOwnerTest {
  private static final int MAPS = 10;
  private static final Duration LONG = Duration.ofHours(1);
  private static final Keeper.Limits UNLIMITED =
      new Keeper.Limits(Long.MAX_VALUE, LONG, LONG, LONG);

  @TempDir private java.nio.file.Path temp;
  private final Leaks leaks = new Leaks();
  private final TestClock clock = TestClock.standing();
  private final LocalChannels channels = new LocalChannels();
  private final KeptTransport transport =
      new KeptTransport(
          refusing(),
          source -> false,
          () -> channels.open(null),
          source -> {},
          LONG,
          Clock.system());

  @AfterEach
  void noLeaks() {
    transport.close();
    leaks.check();
  }

  private SocketFolder folder() {
    return ShuffleNode.socketFolder(temp.resolve("s"), "app-test", TestNodes.SECRET);
  }

  private Keeper startKeeper() {
    return Keeper.start(
        folder(),
        TestNodes.SECRET,
        UNLIMITED,
        (executorId, outputs) -> Set.of(),
        channels::open,
        null,
        null,
        "1.2",
        () -> Long.MAX_VALUE,
        clock);
  }

  private static FakeStaging refusing() {
    return new FakeStaging(block -> new byte[0]) {
      @Override
      public void fetch(final BlockSource source, final List<Block> blocks, final Sink sink) {
        sink.failed(blocks, new IOException("refused"));
      }
    };
  }

  private void rounds(final Keeper keeper, final String what, final BooleanSupplier is) {
    TestNodes.eventually(
        what,
        () -> {
          clock.advance(Duration.ofMillis(1));
          keeper.round();
          return is.getAsBoolean();
        });
  }

  private static boolean isKept(final NodeProcess owner) {
    try {
      return owner.ask("kept", 1, MAPS).equals("" + MAPS);
    } catch (final IOException e) {
      throw new AssertionError(e);
    }
  }

  /** Asks for a block; the result is why it failed. */
  private CompletableFuture<Throwable> ask(final NodeProcess owner) throws IOException {
    final int port = Integer.parseInt(owner.ask("keeperPort", 1));
    final BlockSource near = owner.source(1, MAPS);
    return ask(
        new BlockSource(
            near.executorId(),
            near.knownLocation().withKeeper(port),
            "host",
            near.address(),
            near.blocks().subList(0, 1),
            true));
  }

  private CompletableFuture<Throwable> ask(final BlockSource source) {
    final CompletableFuture<Throwable> failure = new CompletableFuture<>();
    transport.fetch(
        source,
        source.blocks(),
        new Transport.Sink() {
          @Override
          public void arrived(final Block block, final Transport.Payload payload) {
            payload.release();
            failure.completeExceptionally(new AssertionError("it has come"));
          }

          @Override
          public void failed(final Block block, final Throwable cause) {
            failure.complete(cause);
          }
        });
    return failure;
  }

  @Test
  void anExecutorThatAnswersItsKeeperLives() throws Exception {
    try (NodeProcess owner = new NodeProcess(temp.resolve("s"), "1");
        Keeper keeper = startKeeper()) {
      owner.ask("write", 1, MAPS);
      rounds(keeper, "all is kept", () -> isKept(owner));
      final CompletableFuture<Throwable> failure = ask(owner);
      rounds(keeper, "its question has come", () -> channels.openLinks() > 0);
      keeper.round();
      assertThat(failure).as("it may just be ending").isNotDone();
      clock.advance(Duration.ofSeconds(3));
      rounds(keeper, "the keeper says that it lives", failure::isDone);
      assertThat(failure.join()).hasMessage("refused");
    }
  }

  /** It may be ending as well: nobody can tell. */
  @Test
  void anExecutorThatPausesIsWaitedForLonger() throws Exception {
    try (NodeProcess owner = new NodeProcess(temp.resolve("s"), "1");
        Keeper keeper = startKeeper()) {
      owner.ask("write", 1, MAPS);
      rounds(keeper, "all is kept", () -> isKept(owner));
      final CompletableFuture<Throwable> failure = ask(owner);
      owner.pause();
      try {
        rounds(keeper, "its question has come", () -> channels.openLinks() > 0);
        for (int i = 0; i < 4; i++) {
          clock.advance(Duration.ofSeconds(2));
          keeper.round();
        }
        assertThat(failure).isNotDone();
      } finally {
        owner.resume();
      }
      rounds(keeper, "the keeper says that it lives", failure::isDone);
      assertThat(failure.join()).hasMessage("refused");
    }
  }

  @Test
  void anExecutorThatIsAboutToEndSaysSo() {
    try (ShuffleNode owner =
            ShuffleNode.start(TestNodes.config(temp.resolve("s"), "1").set("keeper", true));
        SocketFolder there = folder();
        PeerLink link =
            PeerLink.connect(
                there.socket(owner.location().socket()),
                Location.KEEPER,
                owner.location().socket(),
                TestNodes.SECRET,
                Duration.ofSeconds(10))) {
      assertThat(isRootKept(link, owner)).isTrue();
      owner.parts.keeping.ends();
      assertThat(isRootKept(link, owner)).isFalse();
    }
  }

  private static boolean isRootKept(final PeerLink link, final ShuffleNode owner) {
    try (SegmentHandle root =
        link.keep(owner.parts.memory.root().memory().id(), Duration.ofSeconds(10))) {
      return root != null;
    }
  }
}
