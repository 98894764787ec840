package io.zerohop.device;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class CopyRunsTest {
  private final List<String> copies = new ArrayList<>();

  private final CopyBatch batch =
      new CopyBatch() {
        @Override
        public void add(final long source, final long destination, final long length) {
          copies.add(source + " to " + destination + ": " + length);
        }

        @Override
        public int size() {
          return copies.size();
        }

        @Override
        public long bytes() {
          return 0;
        }

        @Override
        public void clear() {
          copies.clear();
        }
      };

  private final CopyRuns runs = new CopyRuns(batch);

  @Test
  void whatLiesSideBySideAtBothEndsIsOneCopy() {
    runs.add(100, 900, 10);
    runs.add(110, 910, 20);
    runs.add(130, 940, 5); // A gap at the destination.
    runs.add(140, 945, 5); // One at the source.
    runs.add(145, 950, 7);
    runs.end();
    assertThat(copies).containsExactly("100 to 900: 30", "130 to 940: 5", "140 to 945: 12");
  }

  @Test
  void runsStayBelowWhatCopyEnginesTake() {
    final long half = 40L << 20;
    runs.add(1, 1 << 30, half);
    runs.add(1 + half, (1 << 30) + half, half);
    runs.end();
    assertThat(copies).hasSize(2);
  }

  @Test
  void nothingIsNoCopy() {
    runs.end();
    runs.end();
    assertThat(copies).isEmpty();
  }
}
