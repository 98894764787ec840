package io.zerohop.shuffle.transport.remote;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.HostBuffer;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.remote.Slabs.Slab;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Which memory a slab is made of, and what becomes of it. */
class SlabsTest {
  private static final long MAX_IDLE = 8 << 20;

  /** Sizes of the buffers that were made; their addresses are their numbers. */
  private final List<Long> made = new ArrayList<>();

  private final List<Long> closed = new ArrayList<>();
  private final Slabs slabs = new Slabs(this::buffer, MAX_IDLE, Clock.system());

  private HostBuffer buffer(final long bytes) {
    made.add(bytes);
    final long number = made.size();
    return new HostBuffer() {
      @Override
      public long address() {
        return number;
      }

      @Override
      public long bytes() {
        return bytes;
      }

      @Override
      public void close() {
        closed.add(number);
      }
    };
  }

  @AfterEach
  void everythingIsFreed() {
    slabs.close();
    assertThat(slabs.taken()).isZero();
    assertThat(closed).hasSize(made.size()).doesNotHaveDuplicates();
  }

  @Test
  void anEighthAtMostIsMadeInVain() {
    final List<Slab> all = new ArrayList<>();
    for (long bytes = 1; bytes < 40 << 20; bytes = bytes * 3 / 2 + 1) {
      all.add(slabs.take(bytes));
      final long got = made.get(made.size() - 1);
      assertThat(got).isBetween(bytes, Math.max(Slabs.MIN_BYTES, bytes) * 9 / 8 + Slabs.MIN_BYTES);
    }
    all.forEach(Slab::release);
  }

  @Test
  void whatWasReturnedIsUsedAgainIfItFits() {
    slabs.take(1 << 20).release();
    final Slab less = slabs.take((1 << 20) - 200_000);
    assertThat(less.address()).isEqualTo(1);
    final Slab other = slabs.take(1 << 20);
    assertThat(other.address()).as("the first is taken").isEqualTo(2);
    less.release();
    other.release();
    final Slab small = slabs.take(300_000);
    assertThat(small.address()).as("the others are far too long").isEqualTo(3);
    small.release();
  }

  @Test
  void theLeastThatFitsIsUsed() {
    final Slab large = slabs.take(1_600_000);
    final Slab small = slabs.take(1_200_000);
    large.release();
    small.release();
    final Slab again = slabs.take(1_100_000);
    assertThat(again.address()).isEqualTo(2);
    again.release();
  }

  @Test
  void onlySoMuchIsKept() {
    final Slab large = slabs.take(MAX_IDLE);
    final Slab more = slabs.take(1 << 20);
    large.release();
    more.release();
    assertThat(closed).containsExactly(2L);
  }

  @Test
  void nothingIsTakenFromClosedOnes() {
    slabs.close();
    assertThatThrownBy(() -> slabs.take(1)).isInstanceOf(IllegalStateException.class);
  }
}
