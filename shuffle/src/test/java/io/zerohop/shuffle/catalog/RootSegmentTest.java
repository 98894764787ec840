package io.zerohop.shuffle.catalog;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.host.HostDevice;
import io.zerohop.shuffle.catalog.CatalogView.CatalogException;
import io.zerohop.shuffle.catalog.RootSegment.RootLayout;
import io.zerohop.shuffle.catalog.RootSegment.RootView;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.Tier;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class RootSegmentTest {
  private final HostDevice device = new HostDevice();
  private final RootSegment root = new RootSegment(device, 5);
  private final RootView view = new RootView(root.memory(), 5, "test");

  @AfterEach
  void noLeaks() {
    root.close();
    device.close();
  }

  @Test
  void theDirectoryAgreesWithAMap() {
    final Random random = new Random(3);
    final Map<Integer, Long> model = new HashMap<>();
    final Map<Integer, RootView.Listing> listings = new HashMap<>();
    for (int step = 0; step < 60_000; step++) {
      // Ids that meet in few cells, so that searches run over deleted ones.
      final int shuffleId = random.nextInt(40) * RootLayout.DIRECTORY_CELLS + random.nextInt(3);
      if (model.containsKey(shuffleId)) {
        root.unlist(shuffleId);
        model.remove(shuffleId);
        assertThat(view.isCurrent(listings.remove(shuffleId))).isFalse();
      } else {
        assertThat(root.list(shuffleId, step + 1L, step * 256L)).isTrue();
        model.put(shuffleId, step + 1L);
        listings.put(shuffleId, view.find(shuffleId));
      }
      final int other = random.nextInt(40) * RootLayout.DIRECTORY_CELLS + random.nextInt(3);
      final RootView.Listing found = view.find(other);
      if (model.containsKey(other)) {
        assertThat(found.segmentId()).isEqualTo(model.get(other));
        assertThat(view.isCurrent(listings.get(other))).isTrue();
      } else {
        assertThat(found).isNull();
      }
    }
  }

  @Test
  void aFullDirectoryRefuses() {
    for (int shuffleId = 0; shuffleId < RootLayout.DIRECTORY_CELLS; shuffleId++) {
      assertThat(root.list(shuffleId, 1, 0)).isTrue();
    }
    assertThat(root.list(-1, 1, 0)).isFalse();
    assertThat(view.find(-1)).isNull();
    root.unlist(77);
    assertThat(root.list(-1, 9, 0)).isTrue();
    assertThat(view.find(-1).segmentId()).isEqualTo(9);
    for (int shuffleId = -1; shuffleId < RootLayout.DIRECTORY_CELLS; shuffleId++) {
      root.unlist(shuffleId);
    }
    assertThat(view.find(1)).isNull();
  }

  @Test
  void retiredSegmentsAreSeen() {
    final long id = root.register((generation, slot) -> SegmentIds.id(generation, Tier.HOST, slot));
    assertThat(view.inUse(id)).isTrue();
    root.retire(id);
    assertThat(view.inUse(id)).isFalse();
    assertThatThrownBy(() -> root.retire(id)).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void anotherIncarnationIsRefused() {
    assertThatThrownBy(() -> new RootView(root.memory(), 6, "test"))
        .isInstanceOf(CatalogException.class)
        .hasMessageContaining("restarted");
  }
}
