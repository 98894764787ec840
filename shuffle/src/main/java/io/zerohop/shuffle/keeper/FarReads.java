package io.zerohop.shuffle.keeper;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.Crc32c;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.keeper.KeptWire.Read;
import io.zerohop.shuffle.keeper.KeptWire.Wanted;
import io.zerohop.shuffle.transport.ControlChannel.ControlService;
import io.zerohop.shuffle.transport.samenode.KeptExecutor;
import io.zerohop.shuffle.transport.samenode.LeftBlocks;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Answers executors of other nodes that read what executors of this node have left. All who ask
 * have proved that they belong to the application. Answers that have not been taken are limited, so
 * that slow readers do not fill the keeper's heap. Questions wait for a while for room, and for the
 * keeper to take over. Thread safe; nothing waits.
 */
final class FarReads implements ControlService {
  private static final Logger LOG = LoggerFactory.getLogger(FarReads.class);
  private static final Duration PATIENCE = Duration.ofSeconds(10);

  /**
   * So long after a question its owner is asked whether it lives: most that fail to give a block
   * are just ending, and have begun to by then.
   */
  private static final Duration DOUBT = Duration.ofSeconds(1);

  /** An answer that has not been taken for so long is no longer counted. */
  private static final Duration FORGOTTEN = Duration.ofSeconds(30);

  private static final long MAX_UNTAKEN = 16L << 20;

  /** So that one reader that takes nothing leaves room for the others. */
  private static final long MAX_UNTAKEN_OF_LINK = 4L << 20;

  private static final int MAX_WAITING = 4096;

  /** Of all questions that wait: each takes some 28 bytes of the keeper's heap. */
  private static final int MAX_WAITING_BLOCKS = 200_000;

  private static final int MAX_WAITING_BLOCKS_OF_LINK = MAX_WAITING_BLOCKS / 4;

  private static final int MAX_WAITING_OF_LINK = 256;

  /** When a question that finds no place is to be asked again. */
  private static final Duration PAUSE = Duration.ofMillis(500);

  /** So that those that find no place do not fill the heap either. */
  private static final int MAX_OPEN = 1 << 16;

  private final Function<String, @Nullable LeftBlocks> left;
  private final Clock clock;
  private final Runnable disk;
  private final LongAdder blocks = new LongAdder();
  private final LongAdder bytes = new LongAdder();

  /** By link, in the order of the answers. */
  @GuardedBy("this")
  private final Map<Long, Deque<Untaken>> untaken = new HashMap<>();

  /** In the order in which they came; also those that a thread looks at just now. */
  @GuardedBy("this")
  private final Set<Waiting> waiting = new LinkedHashSet<>();

  /** How many of them have a place, and by link. */
  @GuardedBy("this")
  private final Map<Long, Integer> places = new HashMap<>();

  @GuardedBy("this")
  private int placesTaken;

  /** Blocks that those ask for, and by link. */
  @GuardedBy("this")
  private int waitingBlocks;

  @GuardedBy("this")
  private final Map<Long, Integer> blocksOfLinks = new HashMap<>();

  /** Bytes of an answer that the other end may not have yet. */
  private static final class Untaken {
    private final long until;
    private long bytes;
    private boolean isSent;

    private Untaken(final long bytes, final long until) {
      this.bytes = bytes;
      this.until = until;
    }
  }

  private static final class Waiting {
    private final long link;
    private final String socket;

    /** Absent if there was no place for it. */
    private final @Nullable Read read;

    private final Consumer<ByteBuffer> answer;
    private final long until;
    private final long doubtAt;

    /** Whether a thread answers it, or looks whether it can; guarded by its keeper's reads. */
    private boolean inWork;

    private Waiting(
        final long link,
        final String socket,
        final @Nullable Read read,
        final Consumer<ByteBuffer> answer,
        final long until,
        final long doubtAt) {
      this.link = link;
      this.socket = socket;
      this.read = read;
      this.answer = answer;
      this.until = until;
      this.doubtAt = doubtAt;
    }
  }

  /**
   * @param left finds what an executor has left, by the name of its socket
   * @param disk has {@link #roundOfDisk} called by a thread that may wait for one. Does not wait
   */
  FarReads(
      final Function<String, @Nullable LeftBlocks> left, final Clock clock, final Runnable disk) {
    this.left = left;
    this.clock = clock;
    this.disk = disk;
  }

  @Override
  public void asked(final long link, final ByteBuffer question, final Consumer<ByteBuffer> answer) {
    final byte kind = KeptWire.kind(question);
    if (kind == KeptWire.TAKEN) {
      taken(link, KeptWire.takenBytes(question));
      answer.accept(ByteBuffer.allocate(0));
      round();
    } else if (kind == KeptWire.READ) {
      await(link, Read.parse(question), answer);
      round(); // Those that came before go first.
    } else {
      throw new IllegalArgumentException("a keeper has no answer to questions of kind " + kind);
    }
  }

  /** One that finds no place is not kept: its reader soon hears that the keeper is busy. */
  private synchronized void await(
      final long link, final Read read, final Consumer<ByteBuffer> answer) {
    if (waiting.size() >= MAX_OPEN) {
      throw new IllegalStateException("too many questions wait for this keeper");
    }
    final int blocks = read.blocks().size();
    final boolean hasPlace =
        placesTaken < MAX_WAITING
            && places.getOrDefault(link, 0) < MAX_WAITING_OF_LINK
            && waitingBlocks + blocks <= MAX_WAITING_BLOCKS
            && blocksOfLinks.getOrDefault(link, 0) + blocks <= MAX_WAITING_BLOCKS_OF_LINK;
    if (hasPlace) {
      count(link, 1, blocks);
    }
    waiting.add(
        hasPlace
            ? new Waiting(link, read.socket(), read, answer, clock.in(PATIENCE), clock.in(DOUBT))
            : new Waiting(link, read.socket(), null, answer, clock.in(PAUSE), clock.in(PAUSE)));
  }

  @GuardedBy("this")
  private void count(final long link, final int questions, final int blocks) {
    placesTaken += questions;
    waitingBlocks += blocks;
    places.merge(link, questions, FarReads::sumOrNone);
    blocksOfLinks.merge(link, blocks, FarReads::sumOrNone);
  }

  private static @Nullable Integer sumOrNone(final int had, final int more) {
    return had + more == 0 ? null : had + more;
  }

  @GuardedBy("this")
  private void uncount(final Waiting asked) {
    if (asked.read != null) {
      count(asked.link, -1, -asked.read.blocks().size());
    }
  }

  /**
   * Asks executors whose blocks somebody has waited for a while whether they live. One that says so
   * has left nothing. One that was killed says nothing any more, so its end is not the reason of a
   * failure before its answer. Waits a limited time for each, once in a while.
   */
  void askOwners(final List<KeptExecutor> executors) {
    final Map<String, List<Waiting>> doubted = doubted();
    for (final KeptExecutor executor : executors) {
      final List<Waiting> asked = doubted.getOrDefault(executor.socket(), List.of());
      if (!asked.isEmpty() && executor.answers()) {
        asked.stream().filter(this::begin).forEach(this::refuseOfLiving);
      }
    }
  }

  private synchronized Map<String, List<Waiting>> doubted() {
    return waiting.isEmpty()
        ? Map.of()
        : waiting.stream()
            .filter(asked -> asked.read != null && clock.isOver(asked.doubtAt))
            .collect(Collectors.groupingBy(asked -> asked.socket));
  }

  private void refuseOfLiving(final Waiting asked) {
    refuse(asked);
    end(asked, true);
  }

  /** Answers what has waited, where that is possible now or its time is over. Does not wait. */
  void round() {
    if (round(false)) {
      disk.run();
    }
  }

  /** The same also of blocks in files; waits for the disk. */
  void roundOfDisk() {
    round(true);
  }

  /** Returns whether some were left out, since they are in files. */
  private boolean round(final boolean waits) {
    final List<Waiting> due;
    synchronized (this) {
      if (waiting.isEmpty()) {
        return false;
      }
      due = List.copyOf(waiting);
    }
    boolean leavesOut = false;
    for (final Waiting asked : due) {
      if (!waits && isInFile(asked)) {
        leavesOut = true;
      } else if (begin(asked)) {
        boolean isAnswered = true;
        try {
          isAnswered = isAnswered(asked);
        } finally {
          end(asked, isAnswered);
        }
      }
    }
    return leavesOut;
  }

  private boolean isInFile(final Waiting asked) {
    final LeftBlocks there = asked.read == null ? null : left.apply(asked.socket);
    return there != null && asked.read != null && there.isInFile(asked.read.shuffleId());
  }

  private synchronized boolean begin(final Waiting asked) {
    if (asked.inWork || !waiting.contains(asked)) {
      return false;
    }
    asked.inWork = true;
    return true;
  }

  private synchronized void end(final Waiting asked, final boolean isAnswered) {
    asked.inWork = false;
    if (isAnswered && waiting.remove(asked)) {
      uncount(asked);
    }
  }

  /** One that fails takes none of the others along: its reader hears that nothing is there. */
  private boolean isAnswered(final Waiting asked) {
    try {
      if (asked.read != null && serve(asked, asked.read)) {
        return true;
      }
      if (!clock.isOver(asked.until)) {
        return false;
      }
      final boolean isBusy = asked.read == null || left.apply(asked.socket) != null;
      asked.answer.accept(status(isBusy ? KeptWire.BUSY : KeptWire.NOT_LEFT));
    } catch (final RuntimeException e) {
      LOG.info("{} is not sent", asked.socket, e);
      refuse(asked);
    }
    return true;
  }

  private static void refuse(final Waiting asked) {
    try {
      asked.answer.accept(status(KeptWire.NOT_LEFT));
    } catch (final RuntimeException e) {
      LOG.info("nobody hears that {} is not sent", asked.socket, e);
    }
  }

  private static ByteBuffer status(final byte status) {
    return ByteBuffer.allocate(1).put(status).flip();
  }

  private boolean serve(final Waiting asked, final Read read) {
    final LeftBlocks there = left.apply(asked.socket);
    final boolean isThere = there != null && !there.isBeingCopied(read.shuffleId());
    final Untaken reserved = isThere ? reserve(asked.link) : null;
    if (there == null || reserved == null) {
      return false;
    }
    int answered = 0;
    try {
      final ByteBuffer answer = answer(there, read);
      if (there.isBeingCopied(read.shuffleId())) {
        return false; // Copies that it would have been read from were closed meanwhile.
      }
      answered = answer.remaining();
      settle(reserved, answered);
      asked.answer.accept(answer);
      return true;
    } finally {
      if (answered == 0) {
        settle(reserved, 0);
      }
    }
  }

  /** Makes room for an answer; null if there is none. */
  private synchronized @Nullable Untaken reserve(final long link) {
    untaken.values().forEach(answers -> answers.removeIf(this::isPast));
    untaken.values().removeIf(Deque::isEmpty);
    final long all = untaken.values().stream().mapToLong(FarReads::sum).sum();
    final Deque<Untaken> own = untaken.get(link);
    if (all + KeptWire.MAX_ANSWER > MAX_UNTAKEN
        || own != null && sum(own) + KeptWire.MAX_ANSWER > MAX_UNTAKEN_OF_LINK) {
      return null;
    }
    final Untaken answer = new Untaken(KeptWire.MAX_ANSWER, clock.in(FORGOTTEN));
    untaken.computeIfAbsent(link, id -> new ArrayDeque<>()).add(answer);
    return answer;
  }

  private boolean isPast(final Untaken answer) {
    return clock.isOver(answer.until) || answer.isSent && answer.bytes == 0;
  }

  private static long sum(final Deque<Untaken> answers) {
    return answers.stream().mapToLong(answer -> answer.bytes).sum();
  }

  /** Only so much of what was reserved for an answer is used. */
  private synchronized void settle(final Untaken reserved, final int used) {
    reserved.bytes = used;
    reserved.isSent = true;
  }

  /** The other end has so many bytes more, of the oldest answers first. */
  private synchronized void taken(final long link, final int count) {
    long left = count;
    for (final Untaken answer : untaken.getOrDefault(link, new ArrayDeque<>())) {
      if (answer.isSent) {
        final long part = Math.min(left, answer.bytes);
        answer.bytes -= part;
        left -= part;
      }
    }
  }

  private ByteBuffer answer(final LeftBlocks there, final Read read) {
    final List<Integer> lengths = new ArrayList<>();
    final List<Long> totals = new ArrayList<>();
    int size = 1;
    for (final Wanted block : read.blocks()) {
      final long total = there.bytes(read.shuffleId(), block.mapId(), block.partition());
      final long from = lengths.isEmpty() ? read.from() : 0;
      final long rest = Math.max(0, total - from);
      final int room =
          Math.min(LeftBlocks.PART_BYTES, KeptWire.MAX_ANSWER - size - KeptWire.ITEM_BYTES);
      final boolean isPart = rest > room;
      if (room < 0 || isPart && !lengths.isEmpty()) {
        break;
      }
      final int length = (int) Math.min(rest, room);
      lengths.add(length);
      totals.add(total);
      size += KeptWire.ITEM_BYTES + length;
      if (isPart) {
        break;
      }
    }
    final byte[] bytesOfAnswer = new byte[size];
    final ByteBuffer answer = ByteBuffer.wrap(bytesOfAnswer).put(KeptWire.FOUND);
    for (int i = 0; i < lengths.size(); i++) {
      put(there, read, i, totals.get(i), lengths.get(i), bytesOfAnswer, answer);
    }
    return answer.flip();
  }

  private void put(
      final LeftBlocks there,
      final Read read,
      final int index,
      final long total,
      final int length,
      final byte[] bytesOfAnswer,
      final ByteBuffer answer) {
    final Wanted block = read.blocks().get(index);
    final int at = answer.position();
    final int begin = at + KeptWire.ITEM_BYTES;
    final ByteBuffer part = ByteBuffer.wrap(bytesOfAnswer, begin, length);
    final long from = index == 0 ? read.from() : 0;
    if (total < from
        || !there.read(read.shuffleId(), block.mapId(), block.partition(), from, part)) {
      answer.putLong(-1).putInt(0).putInt(0);
      return;
    }
    answer
        .putLong(total)
        .putInt(length)
        .putInt(Crc32c.of(ByteBuffer.wrap(bytesOfAnswer, begin, length)));
    answer.position(begin + length);
    blocks.increment();
    bytes.add(length);
  }

  /** Blocks that were sent, in whole or in part. */
  long sentBlocks() {
    return blocks.sum();
  }

  /** Bytes of them. */
  long sentBytes() {
    return bytes.sum();
  }

  @Override
  public synchronized void disconnected(final long link) {
    untaken.remove(link);
    final List<Waiting> gone = waiting.stream().filter(asked -> asked.link == link).toList();
    gone.forEach(waiting::remove);
    gone.forEach(this::uncount);
  }
}
