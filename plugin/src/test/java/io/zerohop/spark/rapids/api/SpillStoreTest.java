package io.zerohop.spark.rapids.api;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import scala.Option;

/** A place of ours as RAPIDS sees it, by an interface of the same shape. */
class SpillStoreTest {
  /** The names and types of RAPIDS' DeviceSpillableHandle and what it extends. */
  interface Lookalike extends AutoCloseable {
    long approxSizeInBytes();

    boolean closed();

    Option<Object> taskId();

    long taskPriority();

    default boolean spillable() {
      throw new AssertionError("the place answers that");
    }

    long spill();

    boolean spilling();

    Option<AutoCloseable> dev();

    default void releaseSpilled() {
      throw new AssertionError("that would take it off the list");
    }

    @Override
    void close();
  }

  private static final class FakePlace implements SpillStore.Place {
    private long bytes = 5;

    @Override
    public long bytes() {
      return bytes;
    }

    @Override
    public long giveBack() {
      final long given = bytes;
      bytes = 0;
      return given;
    }
  }

  private static Lookalike handle(final SpillStore.Place place, final long priority) {
    return (Lookalike) SpillStore.handle(Lookalike.class, priority, place);
  }

  @Test
  void itIsAskedAndStaysOnTheList() {
    final Lookalike handle = handle(new FakePlace(), -7);
    assertThat(handle.taskPriority()).isEqualTo(-7);
    assertThat(handle.spillable()).isTrue();
    assertThat(handle.approxSizeInBytes()).isEqualTo(5);
    assertThat(handle.spill()).isEqualTo(5);
    handle.releaseSpilled();
    assertThat(handle.spillable()).isFalse();
    assertThat(handle.closed()).isFalse();
    assertThat(handle.spilling()).isFalse();
    assertThat(handle.dev().isEmpty()).isTrue();
    assertThat(handle.taskId().isEmpty()).isTrue();
    handle.close();
  }

  @Test
  void itIsFoundAgainInATable() {
    final SpillStore.Place place = new FakePlace();
    final Lookalike one = handle(place, 0);
    final Lookalike other = handle(place, 0);
    final Map<Object, Integer> table = new HashMap<>(Map.of(one, 1, other, 2));
    assertThat(table.remove(other)).isEqualTo(2);
    assertThat(table).containsOnlyKeys(one);
    assertThat(one.toString()).contains("Zerohop");
  }
}
