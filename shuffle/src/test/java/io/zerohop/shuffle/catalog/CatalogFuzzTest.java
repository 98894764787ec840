package io.zerohop.shuffle.catalog;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Fuzz;
import io.zerohop.shuffle.catalog.TestCatalog.Written;
import io.zerohop.shuffle.pool.SegmentMemory;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A peer's catalog whose memory holds anything: who looks blocks up gets the right answer, none, or
 * a typed failure, and never an address outside of what is mapped.
 */
@Timeout(value = 20, unit = TimeUnit.MINUTES) // A half-written cell is looked at many times.
class CatalogFuzzTest {
  private final TestCatalog catalog = new TestCatalog();
  private final List<Written> outputs =
      List.of(catalog.publish(1, 20, 1, true), catalog.publish(2, 5, 2, true));

  @AfterEach
  void close() {
    catalog.close();
  }

  @Test
  void entriesOfAChunk() throws IOException {
    final RootView.Listing listing =
        new RootView(catalog.root().memory(), TestCatalog.INCARNATION, "test")
            .find(TestCatalog.SHUFFLE);
    final SegmentMemory memory = catalog.pool().resolve(listing.segmentId());
    final int chunk = (int) listing.chunkOffset();
    run(
        "catalog entries",
        memory.buffer(),
        chunk,
        TestCatalog.usedBytes(memory, chunk, outputs.size()));
  }

  @Test
  void headerOfTheRoot() throws IOException {
    run("catalog header", catalog.root().memory().buffer(), 0, RootLayout.HEADER_BYTES);
  }

  @Test
  void directoryOfTheRoot() throws IOException {
    run(
        "catalog directory",
        catalog.root().memory().buffer(),
        RootLayout.DIRECTORY,
        (TestCatalog.SHUFFLE + 2) * RootLayout.CELL_BYTES);
  }

  private void run(final String what, final UnsafeBuffer memory, final int offset, final int length)
      throws IOException {
    final byte[] right = new byte[length];
    memory.getBytes(offset, right);
    Fuzz.run(
        what,
        random -> right,
        bytes -> {
          memory.putBytes(offset, Arrays.copyOf(bytes, length));
          final boolean found = outputs.stream().allMatch(this::isFound);
          memory.putBytes(offset, right);
          return found;
        },
        List.of());
  }

  private boolean isFound(final Written output) {
    try {
      final ShuffleView shuffle = catalog.view().shuffle(TestCatalog.SHUFFLE);
      final EntryCursor cursor = new EntryCursor();
      if (shuffle == null || !shuffle.find(output.mapId(), cursor)) {
        return false;
      }
      assertThat(cursor.batches()).isEqualTo(output.batches().size());
      assertThat(cursor.partitions()).isEqualTo(output.partitions());
      for (int batch = 0; batch < cursor.batches(); batch++) {
        for (int partition = 0; partition < cursor.partitions(); partition++) {
          assertThat(output.matches(cursor, batch, partition)).isTrue();
        }
      }
      return true;
    } catch (final CatalogException e) {
      return false;
    }
  }
}
