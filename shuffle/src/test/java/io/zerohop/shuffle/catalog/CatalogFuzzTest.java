package io.zerohop.shuffle.catalog;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.zerohop.device.Fuzz;
import io.zerohop.shuffle.catalog.CatalogView.CatalogException;
import io.zerohop.shuffle.catalog.CatalogView.ShuffleView;
import io.zerohop.shuffle.catalog.RootSegment.RootLayout;
import io.zerohop.shuffle.catalog.RootSegment.RootView;
import io.zerohop.shuffle.catalog.TestCatalog.Written;
import io.zerohop.shuffle.pool.SegmentMemory;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.Function;
import java.util.stream.Stream;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * A peer's catalog whose memory holds anything: who looks blocks up gets the right answer, none, or
 * a typed failure, and never an address outside of what is mapped.
 */
class CatalogFuzzTest {
  private final TestCatalog catalog = new TestCatalog();
  private final List<Written> outputs =
      List.of(catalog.publish(1, 20, 1, true), catalog.publish(2, 5, 2, true));

  @AfterEach
  void close() {
    catalog.close();
  }

  /** A part of the catalog's memory, as it was written. */
  private record Part(UnsafeBuffer memory, int offset, byte[] right) {
    static Part of(final UnsafeBuffer memory, final int offset, final int length) {
      final byte[] right = new byte[length];
      memory.getBytes(offset, right);
      return new Part(memory, offset, right);
    }
  }

  private static Part entries(final CatalogFuzzTest test) {
    final TestCatalog catalog = test.catalog;
    final RootView.Listing listing =
        new RootView(catalog.root().memory(), TestCatalog.INCARNATION, "test")
            .find(TestCatalog.SHUFFLE);
    final SegmentMemory memory = catalog.pool().resolve(listing.segmentId());
    final int chunk = (int) listing.chunkOffset();
    final int used = TestCatalog.usedBytes(memory, chunk, test.outputs.size());
    return Part.of(memory.buffer(), chunk, used);
  }

  private static Part header(final CatalogFuzzTest test) {
    return Part.of(test.catalog.root().memory().buffer(), 0, RootLayout.HEADER_BYTES);
  }

  private static Part directory(final CatalogFuzzTest test) {
    return Part.of(
        test.catalog.root().memory().buffer(),
        RootLayout.DIRECTORY,
        (TestCatalog.SHUFFLE + 2) * RootLayout.CELL_BYTES);
  }

  private static Stream<Arguments> seeds(final Function<CatalogFuzzTest, Part> part) {
    final CatalogFuzzTest test = new CatalogFuzzTest();
    try {
      final byte[] right = part.apply(test).right();
      return Fuzz.seeds(random -> damagedOrNot(right, random));
    } finally {
      test.close();
    }
  }

  /** Words are what such memory goes wrong by; a fuzzer is slower to find that. */
  private static byte[] damagedOrNot(final byte[] right, final Random random) {
    final byte[] bytes = right.clone();
    if (random.nextBoolean()) {
      final int word = random.nextInt(bytes.length / Long.BYTES) * Long.BYTES;
      ByteBuffer.wrap(bytes).putLong(word, random.nextLong() >> random.nextInt(Long.SIZE));
    }
    return bytes;
  }

  static Stream<Arguments> entrySeeds() {
    return seeds(CatalogFuzzTest::entries);
  }

  static Stream<Arguments> headerSeeds() {
    return seeds(CatalogFuzzTest::header);
  }

  static Stream<Arguments> directorySeeds() {
    return seeds(CatalogFuzzTest::directory);
  }

  @MethodSource("entrySeeds")
  @FuzzTest
  void entriesOfAChunk(final byte[] bytes) {
    lookUp(entries(this), bytes);
  }

  @MethodSource("headerSeeds")
  @FuzzTest
  void headerOfTheRoot(final byte[] bytes) {
    lookUp(header(this), bytes);
  }

  @MethodSource("directorySeeds")
  @FuzzTest
  void directoryOfTheRoot(final byte[] bytes) {
    lookUp(directory(this), bytes);
  }

  @Test
  void whatIsRightIsFoundAndWhatIsGoneIsNot() {
    for (final Part part : List.of(entries(this), header(this), directory(this))) {
      assertThat(lookUp(part, part.right())).isTrue();
      assertThat(lookUp(part, new byte[0])).isFalse();
    }
  }

  /** Looks all outputs up while a part holds these bytes, filled up with zeros. */
  private boolean lookUp(final Part part, final byte[] bytes) {
    part.memory().putBytes(part.offset(), Arrays.copyOf(bytes, part.right().length));
    try {
      return outputs.stream().allMatch(this::isFound);
    } finally {
      part.memory().putBytes(part.offset(), part.right());
    }
  }

  private boolean isFound(final Written output) {
    try {
      final ShuffleView shuffle = catalog.view().shuffle(TestCatalog.SHUFFLE);
      final EntryCursor cursor = new EntryCursor();
      if (shuffle == null || !shuffle.find(output.mapId(), cursor)) {
        return false;
      }
      // A fuzzer sees what checksums are compared with, and makes entries whose checksum is right.
      boolean same =
          cursor.batches() == output.batches().size() && cursor.partitions() == output.partitions();
      for (int batch = 0; same && batch < cursor.batches(); batch++) {
        for (int partition = 0; same && partition < cursor.partitions(); partition++) {
          same = output.matches(cursor, batch, partition);
        }
      }
      return same;
    } catch (final CatalogException e) {
      return false;
    }
  }
}
