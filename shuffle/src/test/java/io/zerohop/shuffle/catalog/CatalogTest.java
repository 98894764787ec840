package io.zerohop.shuffle.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Crc32c;
import io.zerohop.device.Leaks;
import io.zerohop.device.Signal.SignalEpoch;
import io.zerohop.device.WaitException;
import io.zerohop.device.host.HostDevice;
import io.zerohop.shuffle.block.DamagedOutputException;
import io.zerohop.shuffle.catalog.Catalog.OwnOutput;
import io.zerohop.shuffle.catalog.Catalog.Registration;
import io.zerohop.shuffle.catalog.CatalogView.CatalogException;
import io.zerohop.shuffle.catalog.CatalogView.ShuffleView;
import io.zerohop.shuffle.catalog.EntryCursor.EntryLayout;
import io.zerohop.shuffle.catalog.RootSegment.RootLayout;
import io.zerohop.shuffle.catalog.RootSegment.RootView;
import io.zerohop.shuffle.catalog.TestCatalog.Written;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.Reclaimer;
import io.zerohop.shuffle.pool.Region;
import io.zerohop.shuffle.pool.SegmentMemory;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class CatalogTest {
  private static final long INCARNATION = TestCatalog.INCARNATION;
  private static final int SHUFFLE = TestCatalog.SHUFFLE;

  private final Leaks leaks = new Leaks();
  private final TestCatalog made = new TestCatalog();
  private final HostDevice device = made.device();
  private final RootSegment root = made.root();
  private final Pool pool = made.pool();
  private final Reclaimer reclaimer = made.reclaimer();
  private final Catalog catalog = made.catalog();
  private final List<long[]> wrong = new ArrayList<>();

  @AfterEach
  void noLeaks() {
    made.close();
    leaks.check();
  }

  private CatalogView view() {
    return made.view();
  }

  @Test
  void nothingIsRememberedOfAShuffleThatHasEnded() throws InterruptedException {
    final WeakReference<Registration> first = new WeakReference<>(catalog.registration(SHUFFLE));
    catalog.unregister(SHUFFLE);
    final Registration second = catalog.registration(SHUFFLE);
    assertThat(second.isEnded()).isFalse();
    final long start = System.nanoTime();
    while (first.get() != null && System.nanoTime() - start < TimeUnit.SECONDS.toNanos(20)) {
      System.gc();
      Thread.sleep(10);
    }
    assertThat(first.get()).as("kept by the catalog").isNull();
    catalog.unregister(SHUFFLE);
    assertThat(second.isEnded()).isTrue();
  }

  private Written publish(final long mapId, final int partitions, final int batches) {
    return made.publish(mapId, partitions, batches, true);
  }

  private Written publish(
      final long mapId, final int partitions, final int batches, final boolean ready) {
    return made.publish(mapId, partitions, batches, ready);
  }

  private void check(final CatalogView view, final Written output) {
    final EntryCursor cursor = new EntryCursor();
    assertThat(view.shuffle(SHUFFLE).find(output.mapId(), cursor)).isTrue();
    assertSame(cursor, output);
  }

  private static void assertSame(final EntryCursor cursor, final Written output) {
    assertThat(cursor.partitions()).isEqualTo(output.partitions());
    assertThat(cursor.batches()).isEqualTo(output.batches().size());
    for (int batch = 0; batch < cursor.batches(); batch++) {
      for (int partition = 0; partition < output.partitions(); partition++) {
        assertThat(output.matches(cursor, batch, partition)).isTrue();
      }
    }
  }

  @Test
  void entriesOfAnyShapeAreFound() {
    final List<Written> outputs = new ArrayList<>();
    final int[] partitions = {1, 2, 63, 64, 65, 127, 128, 129, 1000, 5000};
    final CatalogView early = view();
    for (int i = 0; i < 400; i++) {
      outputs.add(publish(31L * i - 4000, partitions[i % partitions.length], i % 4));
      check(early, outputs.get(i));
    }
    final CatalogView late = view();
    for (final Written output : outputs) {
      check(early, output);
      check(late, output);
    }
    assertThat(early.shuffle(SHUFFLE).find(12, new EntryCursor())).isFalse();
    assertThat(early.shuffle(SHUFFLE + 1)).isNull();
  }

  /** A keeper has the sets of all that executors have left in its small heap. */
  @Test
  void outputsThatLieTogetherShareASet() {
    final int maps = 300;
    for (int map = 0; map < maps; map++) {
      publish(map, 3, 2);
    }
    final Map<Long, Set<Long>> outputs = view().shuffle(SHUFFLE).outputs();
    assertThat(outputs).hasSize(maps);
    final Set<Set<Long>> sets = Collections.newSetFromMap(new IdentityHashMap<>());
    sets.addAll(outputs.values());
    assertThat(sets).hasSameSizeAs(new HashSet<>(outputs.values()));
  }

  @Test
  void aHundredThousandMapOutputsAreFoundAndStaySmall() {
    final int maps = 100_000;
    final List<Written> outputs = new ArrayList<>();
    for (int map = 0; map < maps; map++) {
      final BatchImage image = new BatchImage(2, true);
      image.add(map % 100, map);
      image.add(map % 3, -map);
      image.place(pool.allocate(Math.max(1, image.bytes())));
      final Written output = new Written(map, 2, List.of(image));
      catalog.publish(SHUFFLE, map, catalog.registration(SHUFFLE), 2, output.batches(), true);
      outputs.add(output);
    }
    final long bytes = pool.stats().usedBytes();
    assertThat(bytes / maps)
        .as("bytes of the pool for each, 256 of them its block")
        .isLessThan(600);
    final CatalogView view = view();
    outputs.forEach(output -> check(view, output));
    assertThat(view.shuffle(SHUFFLE).find(maps, new EntryCursor())).isFalse();
  }

  @Test
  void removedAndReplacedEntriesAreNotFound() {
    final CatalogView view = view();
    final EntryCursor cursor = new EntryCursor();
    for (int i = 0; i < 100; i++) {
      publish(i, 10, 1);
    }
    for (int i = 0; i < 100; i += 2) {
      assertThat(catalog.remove(SHUFFLE, i)).isTrue();
    }
    for (int i = 0; i < 100; i++) {
      assertThat(view.shuffle(SHUFFLE).find(i, cursor)).isEqualTo(i % 2 == 1);
    }
    for (int i = 0; i < 100; i++) {
      check(view, publish(i, 20, 2));
    }
    catalog.unregister(SHUFFLE);
    assertThat(view.shuffle(SHUFFLE)).isNull();
  }

  @Test
  void movedEntriesAreFoundAtAllTimes() throws Exception {
    final List<Written> outputs = new ArrayList<>();
    for (int i = 0; i < 500; i++) {
      outputs.add(publish(i, 70, 1 + i % 3));
    }
    final AtomicBoolean moved = new AtomicBoolean();
    final CompletableFuture<Integer> reader =
        CompletableFuture.supplyAsync(
            () -> {
              final CatalogView view = view();
              final EntryCursor cursor = new EntryCursor();
              int rounds = 0;
              for (; rounds == 0 || !moved.get(); rounds++) {
                for (final Written output : outputs) {
                  assertThat(view.shuffle(SHUFFLE).find(output.mapId(), cursor)).isTrue();
                  assertThat(cursor.batches()).isEqualTo(output.batches().size());
                }
              }
              return rounds;
            });
    for (final Written output : outputs) {
      move(output);
    }
    moved.set(true);
    assertThat(reader.get(60, TimeUnit.SECONDS)).isPositive();
    final CatalogView view = view();
    outputs.forEach(output -> check(view, output));
    for (final Written output : outputs.subList(0, 10)) {
      assertThat(catalog.remove(SHUFFLE, output.mapId())).isTrue();
      assertThat(view.shuffle(SHUFFLE).find(output.mapId(), new EntryCursor())).isFalse();
    }
  }

  /** Moves every second batch. */
  private void move(final Written output) {
    final OwnOutput before = catalog.find(SHUFFLE, output.mapId());
    final List<Region> regions = new ArrayList<>(before.regions());
    for (int batch = 0; batch < regions.size(); batch += 2) {
      regions.set(batch, pool.allocate(regions.get(batch).bytes()));
    }
    assertThat(catalog.move(before, regions)).isTrue();
    assertThat(catalog.find(SHUFFLE, output.mapId()).regions()).isEqualTo(regions);
    for (int batch = 0; batch < regions.size(); batch += 2) {
      output.batches().get(batch).place(regions.get(batch));
    }
  }

  @Test
  void whatIsGoneOrDamagedIsNotMoved() {
    publish(1, 10, 1);
    final OwnOutput output = catalog.find(SHUFFLE, 1);
    final Region place = pool.allocate(1_000);
    final UnsafeBuffer entry =
        new UnsafeBuffer(output.entry.chunk().region().address() + output.entry.offset(), 64);
    entry.putInt(EntryLayout.HEADER_BYTES, entry.getInt(EntryLayout.HEADER_BYTES) ^ 1);
    assertThatThrownBy(() -> catalog.move(output, List.of(place)))
        .isInstanceOf(CatalogException.class)
        .hasMessageContaining("damaged");
    entry.putInt(EntryLayout.HEADER_BYTES, entry.getInt(EntryLayout.HEADER_BYTES) ^ 1);
    assertThat(catalog.remove(output)).isTrue();
    assertThat(catalog.remove(output)).isFalse();
    assertThat(catalog.move(output, List.of(place))).isFalse();
    place.release();
  }

  /** Then a block seems to be empty, and the next ones take the places of those before them. */
  @Test
  void aBitOfABitmapIsDamageAlthoughBlocksMatchTheirChecksums() {
    final int partitions = 10;
    final int bytes = 100;
    final BatchImage image = new BatchImage(partitions, true);
    final Region region = pool.allocate(partitions * bytes);
    final UnsafeBuffer blocks = new UnsafeBuffer(region.address(), partitions * bytes);
    for (int partition = 0; partition < partitions; partition++) {
      blocks.setMemory(partition * bytes, bytes, (byte) partition);
      image.add(bytes, Crc32c.of(region.address() + partition * bytes, bytes));
    }
    image.place(region);
    catalog.publish(SHUFFLE, 1, catalog.registration(SHUFFLE), partitions, List.of(image), true);
    final OwnOutput output = catalog.find(SHUFFLE, 1);
    final UnsafeBuffer entry =
        new UnsafeBuffer(
            output.entry.chunk().region().address() + output.entry.offset(), output.entry.bytes());
    final int bitmap = EntryLayout.HEADER_BYTES + EntryLayout.BATCH_BYTES;
    assertThat(output.retain()).isTrue();
    try (Devices devices = new Devices(null);
        MapOutputLease lease =
            new MapOutputLease(output, devices, Duration.ofSeconds(10), ended -> {})) {
      lease.checkIntact();
      entry.putLong(bitmap, entry.getLong(bitmap) ^ 1 << 3);
      assertDamaged(lease, "entry");
      entry.putLong(bitmap, entry.getLong(bitmap) ^ 1 << 3);
      entry.putInt(EntryLayout.BYTES_OFFSET, 1 << 30);
      assertDamaged(lease, "entry");
      entry.putInt(EntryLayout.BYTES_OFFSET, output.entry.bytes());
      blocks.putByte(333, (byte) 77);
      assertDamaged(lease, "partition 3");
      lease.checkIntact(2);
    }
  }

  private static void assertDamaged(final MapOutputLease lease, final String what) {
    assertThatThrownBy(lease::checkIntact)
        .isInstanceOf(DamagedOutputException.class)
        .hasMessageContaining(what);
  }

  @Test
  void aNonEmptyBlockTakesAtMost64Bytes() {
    final long before = pool.stats().usedBytes();
    final int maps = 200;
    final int partitions = 1000;
    long blocks = 0;
    long regions = 0;
    for (int map = 0; map < maps; map++) {
      final Written output = publish(map, partitions, 1);
      blocks += output.batches().get(0).blocks();
      regions += output.batches().get(0).region().bytes();
    }
    final long catalogBytes = pool.stats().usedBytes() - before - regions;
    assertThat(catalogBytes).isLessThan(64 * blocks);
  }

  @Test
  void whatIsNotReadyIsAwaited() {
    final Written output = publish(1, 10, 1, false);
    final EntryCursor cursor = new EntryCursor();
    final ShuffleView shuffle = view().shuffle(SHUFFLE);
    assertThat(shuffle.find(1, cursor)).isTrue();
    assertThat(shuffle.isReady(cursor)).isFalse();
    final SignalEpoch ready = shuffle.ready(device, cursor);
    final Duration moment = Duration.ofMillis(20);
    assertThatThrownBy(() -> ready.signal().await(ready.epoch(), moment, () -> false))
        .isInstanceOfSatisfying(
            WaitException.class,
            e -> assertThat(e.reason()).isEqualTo(WaitException.Reason.TIMEOUT));
    final CompletableFuture<Void> waiter =
        CompletableFuture.runAsync(
            () -> ready.signal().await(ready.epoch(), Duration.ofMinutes(1), () -> false));
    cursor.chunk().signal(device, cursor).raise(ShuffleChunk.READY_EPOCH);
    waiter.join();
    assertThat(shuffle.isReady(cursor)).isTrue();
    assertThat(output.partitions()).isEqualTo(10);
  }

  /** Every bit of the chunk, one at a time: the right answer, none, or a typed failure. */
  @Test
  void aFlippedBitOfAChunkNeverGivesAWrongAnswer() {
    final List<Written> outputs = new ArrayList<>();
    for (int map = 0; map < 3; map++) {
      outputs.add(publish(map, 70, 2));
    }
    final RootView.Listing listing = new RootView(root.memory(), INCARNATION, "test").find(SHUFFLE);
    final SegmentMemory memory = pool.resolve(listing.segmentId());
    final CatalogView warm = view();
    outputs.forEach(output -> check(warm, output));
    final int begin = (int) listing.chunkOffset();
    final int end = begin + TestCatalog.usedBytes(memory, begin, outputs.size());
    int damaged = 0;
    for (int at = begin; at < end; at++) {
      for (int bit = 0; bit < 8; bit++) {
        damaged += flip(memory.buffer(), at, bit, outputs, warm);
      }
    }
    assertThat(wrong).isEmpty();
    assertThat(damaged).as("flips that were noticed").isGreaterThan(8 * (end - begin) / 4);
    outputs.forEach(output -> check(view(), output));
  }

  /** The same for the root: its header, the cell of the shuffle and those around it. */
  @Test
  void aFlippedBitOfTheRootNeverGivesAWrongAnswer() {
    final List<Written> outputs = List.of(publish(0, 70, 2));
    final UnsafeBuffer buffer = root.memory().buffer();
    final CatalogView warm = view();
    final int cell = RootLayout.DIRECTORY + SHUFFLE * RootLayout.CELL_BYTES;
    int damaged = 0;
    for (int at = 0; at < RootLayout.HEADER_BYTES; at++) {
      for (int bit = 0; bit < 8; bit++) {
        damaged += flip(buffer, at, bit, outputs, warm);
      }
    }
    for (int at = cell - RootLayout.CELL_BYTES; at < cell + 2 * RootLayout.CELL_BYTES; at++) {
      for (int bit = 0; bit < 8; bit++) {
        damaged += flip(buffer, at, bit, outputs, view());
      }
    }
    assertThat(wrong).isEmpty();
    assertThat(damaged).isGreaterThan(8 * 32);
  }

  private int flip(
      final UnsafeBuffer buffer,
      final int at,
      final int bit,
      final List<Written> outputs,
      final CatalogView warm) {
    final byte right = buffer.getByte(at);
    buffer.putByte(at, (byte) (right ^ (1 << bit)));
    int damaged = 0;
    for (final Written output : outputs) {
      damaged += lookUp(null, output, at, bit) ? 1 : 0;
      // Verified before: a flip may go unnoticed here, but must not reach out of the memory.
      lookUp(warm, output, at, bit);
    }
    buffer.putByte(at, right);
    return Math.min(1, damaged);
  }

  /** Whether the damage was noticed; a wrong answer of a fresh view is remembered. */
  private boolean lookUp(
      final CatalogView warm, final Written output, final int at, final int bit) {
    try {
      final CatalogView view = warm == null ? view() : warm;
      final ShuffleView shuffle = view.shuffle(SHUFFLE);
      final EntryCursor cursor = new EntryCursor();
      if (shuffle == null || !shuffle.find(output.mapId(), cursor)) {
        return true;
      }
      shuffle.isReady(cursor);
      final int batches = Math.min(cursor.batches(), 8);
      for (int batch = 0; batch < batches; batch++) {
        for (int partition = 0; partition < Math.min(cursor.partitions(), 80); partition++) {
          if (warm == null && !output.matches(cursor, batch, partition)) {
            wrong.add(new long[] {at, bit, output.mapId(), batch, partition});
          } else if (cursor.extent(batch, partition)) {
            final SegmentMemory segment = pool.resolve(cursor.segmentId());
            if (segment != null) {
              final long address = cursor.address(segment);
              assertThat(address).isGreaterThanOrEqualTo(segment.address());
              assertThat(address + cursor.length())
                  .isLessThanOrEqualTo(segment.address() + segment.bytes());
            }
          }
        }
      }
      return false;
    } catch (final CatalogException e) {
      return true;
    }
  }
}
