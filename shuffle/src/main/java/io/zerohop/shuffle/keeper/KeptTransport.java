package io.zerohop.shuffle.keeper;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.WaitException;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.keeper.FarKeepers.NotLeftException;
import io.zerohop.shuffle.keeper.KeptWire.Item;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.ControlChannel;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Stages blocks from their owner, and from the keeper of its node where that does not give them.
 * Once it is certain that an owner has ended, only the keeper is asked. Blocks that no keeper has
 * come from their owner alone. Thread safe.
 *
 * <p>A port that is open says nothing of who has it, so the look at one only spares questions: who
 * gives a block has to prove to be its owner ({@link FallbackTransport}). Where another process has
 * the owner's address, the keeper is asked in that way, too.
 */
public final class KeptTransport implements FallbackTransport, AutoCloseable {
  /** As in the choice of paths: one that says nothing may take three attempts of the kernel's. */
  private static final Duration PROBE = Duration.ofSeconds(5);

  /** How long the last look at an owner holds: of one that says nothing, it may be wrong. */
  private static final Duration MEMORY = Duration.ofSeconds(10);

  /** How often who waits for a part of a block looks whether its task has ended. */
  private static final Duration SLICE = Duration.ofMillis(10);

  private final FallbackTransport owners;
  private final Predicate<BlockSource> isOwn;
  private final Clock clock;
  private final FarKeepers keepers;

  /** The last look at each owner, by incarnation. */
  private final Map<Long, Seen> seen = new ConcurrentHashMap<>();

  /** Owners that have ended for certain, by incarnation. That holds for good: none comes again. */
  private final Set<Long> ended = ConcurrentHashMap.newKeySet();

  private record Seen(boolean lives, long until) {}

  /**
   * @param owners stages blocks from owners that live; stays the caller's
   * @param isOwn whether blocks are this very executor's
   * @param channels makes the channel by which keepers are asked, once it is needed; closed with
   *     this. It limits how long an answer may take
   * @param notReached hears of each request whose keeper did not answer, after it has failed: not
   *     of one that answers that it lacks a block, which others may read. May wait
   * @param connectLimit longest time to connect to a keeper
   */
  public KeptTransport(
      final FallbackTransport owners,
      final Predicate<BlockSource> isOwn,
      final Supplier<ControlChannel> channels,
      final Consumer<BlockSource> notReached,
      final Duration connectLimit,
      final Clock clock) {
    this.owners = owners;
    this.isOwn = isOwn;
    this.clock = clock;
    this.keepers = new FarKeepers(channels, notReached, connectLimit, clock);
  }

  /** Remembers the answer, if outputs are kept, for the requests behind it. */
  @Override
  public boolean answers(final BlockSource source, final Duration limit) {
    return isKept(source) ? lives(source, limit) : owners.answers(source, limit);
  }

  @Override
  public void ended(final BlockSource source) {
    if (isKept(source)) {
      final long incarnation = source.knownLocation().incarnation();
      ended.add(incarnation);
      seen.remove(incarnation);
    } else {
      owners.ended(source);
    }
  }

  @Override
  public void fetch(final BlockSource source, final List<Block> blocks, final Sink sink) {
    if (!isKept(source)) {
      owners.fetch(source, blocks, sink);
    } else if (lives(source, PROBE)) {
      final FromKeeper behind = new FromKeeper(source, sink);
      try {
        owners.fetch(source, blocks, behind);
      } catch (final RuntimeException e) {
        behind.failed(blocks, e);
      }
    } else {
      new FromKeeper(source, sink).request(blocks, null);
    }
  }

  /** Whether a keeper answers this executor for the owner, once that has ended. */
  private boolean isKept(final BlockSource source) {
    return source.kept()
        && source.location() != null
        && source.knownLocation().keeperPort() > 0
        && !isOwn.test(source);
  }

  /**
   * Whether somebody answers at the owner's address who may still be the owner. Waits a limited
   * time.
   */
  private boolean lives(final BlockSource source, final Duration limit) {
    final long incarnation = source.knownLocation().incarnation();
    if (ended.contains(incarnation)) {
      return false;
    }
    final Seen last = seen.get(incarnation);
    if (last != null && !clock.isOver(last.until)) {
      return last.lives;
    }
    seen.values().removeIf(other -> clock.isOver(other.until));
    final boolean lives = owners.answers(source, limit);
    seen.put(incarnation, new Seen(lives, clock.in(MEMORY)));
    return lives;
  }

  /**
   * Asks the keeper for blocks that their owner has not given, one question after the other. Blocks
   * that fail one by one meanwhile are in the next question together.
   */
  private final class FromKeeper implements Sink {
    private final BlockSource source;
    private final Sink sink;

    /** Blocks for the keeper, each with its owner's failure unless that was not asked. */
    @GuardedBy("this")
    private final Map<Block, @Nullable Throwable> missing = new LinkedHashMap<>();

    @GuardedBy("this")
    private boolean isAsking;

    private FromKeeper(final BlockSource source, final Sink sink) {
      this.source = source;
      this.sink = sink;
    }

    @Override
    public void arrived(final Block block, final Payload payload) {
      sink.arrived(block, payload);
    }

    @Override
    public void failed(final Block block, final Throwable cause) {
      request(List.of(block), cause);
    }

    @Override
    public void failed(final Collection<Block> blocks, final Throwable cause) {
      request(blocks, cause);
    }

    /** Asks for blocks soon. Does not wait. */
    private void request(final Collection<Block> blocks, final @Nullable Throwable cause) {
      synchronized (this) {
        blocks.forEach(block -> missing.put(block, cause));
        if (isAsking) {
          return;
        }
        isAsking = true;
      }
      ask();
    }

    private void ask() {
      final List<Block> next = next();
      if (!next.isEmpty()) {
        keepers
            .ask(source, 0, next)
            .whenComplete(
                (answer, failure) -> {
                  if (failure == null) {
                    take(next, answer);
                  } else {
                    fail(failure);
                  }
                });
      }
    }

    /** The blocks of the next question, of one shuffle. */
    private synchronized List<Block> next() {
      final List<Block> next = new ArrayList<>();
      for (final Block block : missing.keySet()) {
        final boolean isOther = !next.isEmpty() && block.shuffleId() != next.get(0).shuffleId();
        if (isOther || next.size() == KeptWire.MAX_BLOCKS) {
          break;
        }
        next.add(block);
      }
      isAsking = !next.isEmpty();
      return next;
    }

    private synchronized void isHere(final Block block) {
      missing.remove(block);
    }

    private void take(final List<Block> asked, final ByteBuffer answer) {
      ended(source); // The keeper has taken over from it.
      try {
        for (int i = 0; answer.hasRemaining(); i++) {
          final Item item = Item.parse(answer);
          final Block block = asked.get(i);
          isHere(block);
          if (item.total() < 0) {
            sink.failed(block, notThere(source));
          } else {
            sink.arrived(block, new KeptPayload(source, block, item));
          }
        }
      } catch (final RuntimeException e) {
        fail(e);
        return;
      }
      ask();
    }

    /** Fails with the owners' failures if those live. */
    private void fail(final Throwable cause) {
      final Map<Block, @Nullable Throwable> failed;
      synchronized (this) {
        failed = new LinkedHashMap<>(missing);
        missing.clear();
        isAsking = false;
      }
      if (cause instanceof NotLeftException) {
        // It may live, and is asked the next time, unless its keeper had it and has dropped it.
        seen.remove(source.knownLocation().incarnation());
        failed.forEach(
            (block, own) -> {
              if (own != null) {
                sink.failed(block, own);
              }
            });
        failed.values().removeIf(own -> own != null);
      }
      if (!failed.isEmpty()) {
        sink.failed(failed.keySet(), cause);
      }
    }
  }

  private static ZerohopException notThere(final BlockSource source) {
    return new ZerohopException(
        ZerohopException.Category.FETCH_FAILED, FarKeepers.notThere(source));
  }

  /** A block, or the first part of a large one; the rest is asked for while it is read. */
  private final class KeptPayload implements Payload {
    private final BlockSource source;
    private final Block block;
    private volatile @Nullable Item first;

    private KeptPayload(final BlockSource source, final Block block, final Item first) {
      this.source = source;
      this.block = block;
      this.first = first;
    }

    private Item item() throws IOException {
      final Item item = first;
      if (item == null) {
        throw new IOException("a block is read after it was released");
      }
      return item;
    }

    @Override
    public long bytes() {
      final Item item = first;
      return item == null ? 0 : item.total();
    }

    @Override
    public InputStream open(final BooleanSupplier ended) throws IOException {
      final Item item = item();
      return item.total() == item.bytes().length
          ? new ByteArrayInputStream(item.bytes())
          : new Parts(this, item, ended);
    }

    private CompletableFuture<ByteBuffer> ask(final long from) {
      return keepers.ask(source, from, List.of(block));
    }

    /** Waits for a part as long as its question may take, or until the reader has ended. */
    private byte[] await(final CompletableFuture<ByteBuffer> asked, final BooleanSupplier ended)
        throws IOException {
      final long total = item().total();
      while (!ended.getAsBoolean()) {
        try {
          final Item part = Item.parse(clock.get(asked, SLICE));
          if (part.total() != total || part.bytes().length == 0) {
            throw lost(notThere(source));
          }
          return part.bytes();
        } catch (final TimeoutException e) {
          // The question has a limit of its own.
        } catch (final InterruptedException e) {
          Thread.currentThread().interrupt();
          break;
        } catch (final ExecutionException e) {
          throw lost(Objects.requireNonNullElse(e.getCause(), e));
        } catch (final IllegalArgumentException e) {
          throw lost(e);
        }
      }
      throw new WaitException(
          WaitException.Reason.CANCELLED, "cancelled while waiting for the rest of a block");
    }

    private BlockFetchException lost(final Throwable cause) {
      return new BlockFetchException(
          block,
          source,
          ShuffleCode.LEFT_NOT_SENT
              .says("the keeper of another node did not send the rest of a block")
              .at(block + " of executor " + source.executorId())
              .because(cause),
          cause);
    }

    @Override
    public void release() {
      first = null;
    }
  }

  /** A large block, part by part; the next is asked for while one is read. Not thread safe. */
  private static final class Parts extends InputStream {
    private final KeptPayload payload;
    private final BooleanSupplier ended;
    private final long total;
    private byte[] part;

    /** Where the next part begins. */
    private long behind;

    /** The next part; absent behind the last one. */
    private @Nullable CompletableFuture<ByteBuffer> next;

    private int at;

    private Parts(final KeptPayload payload, final Item first, final BooleanSupplier ended) {
      this.payload = payload;
      this.ended = ended;
      this.total = first.total();
      this.part = first.bytes();
      askNext();
    }

    private void askNext() {
      behind += part.length;
      next = behind < total ? payload.ask(behind) : null;
    }

    private boolean advance() throws IOException {
      if (at == part.length && next != null) {
        part = payload.await(next, ended);
        at = 0;
        askNext();
      }
      return at < part.length;
    }

    @Override
    public int read() throws IOException {
      return advance() ? part[at++] & 0xff : -1;
    }

    @Override
    public int read(final byte[] target, final int offset, final int length) throws IOException {
      if (length == 0) {
        return 0;
      }
      if (!advance()) {
        return -1;
      }
      final int count = Math.min(length, part.length - at);
      System.arraycopy(part, at, target, offset, count);
      at += count;
      return count;
    }
  }

  /** Blocks that are under way fail. Idempotent. */
  @Override
  public void close() {
    keepers.close();
  }
}
