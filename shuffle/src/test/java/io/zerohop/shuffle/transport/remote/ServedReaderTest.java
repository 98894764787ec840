package io.zerohop.shuffle.transport.remote;

import static io.zerohop.shuffle.transport.remote.RemoteServiceTest.stub;
import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.remote.Carrier.Road;
import io.zerohop.shuffle.transport.remote.ServedReader.SentReader;
import io.zerohop.shuffle.transport.remote.ServedReader.ServedLease;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class ServedReaderTest {
  private final ServedReader reader = new ServedReader(lease -> {}, Clock.system());

  private static ServedLease lease() {
    return ServedLease.of(
        RemoteServiceTest.NOTHING,
        1,
        ByteBuffer.allocate(4),
        new LeaseRoom(1 << 20, 1 << 20, 1),
        Clock.system());
  }

  @Test
  void aLeaseThatIsFoundIsHeldOnceMore() {
    final ServedLease lease = lease();
    reader.hold(1, lease);
    assertThat(reader.find(1)).isSameAs(lease);
    assertThat(reader.drop(1)).isTrue();
    assertThat(lease.retain()).as("by who found it").isTrue();
    assertThat(reader.find(1)).isNull();
  }

  @Test
  void whoTakesNothingLosesItsConnection() {
    final List<String> closed = new ArrayList<>();
    final Deque<Road> endpoints =
        new ArrayDeque<>(
            List.of(endpoint("first", closed, closed), endpoint("second", closed, closed)));
    final Carrier engine = stub(Carrier.class, method -> endpoints.poll());
    final SentReader slow = reader(engine);
    slow.address(new byte[1]);
    final Road first = slow.back().join();
    slow.sends(7);
    slow.expire(TimeUnit.HOURS.toNanos(1));
    assertThat(closed).as("it has time").isEmpty();
    slow.expire(-1);
    assertThat(closed).containsExactly("first");
    assertThat(slow.back().join() == first).as("the next message goes by a new endpoint").isFalse();
    slow.sent(7);
    slow.expire(-1);
    assertThat(closed).as("nothing is on its way").containsExactly("first");
  }

  /** Messages that are under way end with it, when its carrier has closed it. */
  @Test
  void aRoadThatWasLostIsReplacedAtOnce() {
    final List<String> closed = new ArrayList<>();
    final List<String> lost = new ArrayList<>();
    final Deque<Road> roads =
        new ArrayDeque<>(
            List.of(endpoint("first", closed, lost), endpoint("second", closed, lost)));
    final Carrier carrier = stub(Carrier.class, method -> roads.poll());
    final SentReader busy = reader(carrier);
    busy.address(new byte[1]);
    final Road first = busy.back().join();
    assertThat(busy.back().join() == first).as("a road that is good").isTrue();
    lost.add("first");
    final Road second = busy.back().join();
    assertThat(second == first).as("a road that was lost").isFalse();
    assertThat(closed).containsExactly("first");
    assertThat(busy.back().join() == second).as("the new road stays").isTrue();
    assertThat(closed).containsExactly("first");
  }

  private static SentReader reader(final Carrier carrier) {
    return new SentReader(
        carrier, Runnable::run, Duration.ofSeconds(1), lease -> {}, Clock.system());
  }

  /** As when the reader leaves while it is being connected. */
  @Test
  void aRoadThatIsMadeTooLateIsClosed() {
    final List<String> closed = new ArrayList<>();
    final List<Runnable> later = new ArrayList<>();
    final Carrier carrier = stub(Carrier.class, method -> endpoint("late", closed, closed));
    final SentReader left =
        new SentReader(carrier, later::add, Duration.ofSeconds(1), lease -> {}, Clock.system());
    left.address(new byte[1]);
    final CompletableFuture<Road> back = left.back();
    assertThat(left.back()).as("one for all who wait").isSameAs(back);
    left.close();
    assertThat(later).hasSize(1);
    later.get(0).run();
    assertThat(back).isCompleted();
    assertThat(closed).containsExactly("late");
    assertThat(left.back()).isCompletedExceptionally();
  }

  private static Road endpoint(
      final String name, final List<String> closed, final List<String> lost) {
    return stub(
        Road.class,
        method -> method.equals("close") ? closed.add(name) : (Object) !lost.contains(name));
  }

  /** Another thread drops it: it was found in the table, and is released by now. */
  @Test
  void aLeaseThatEndsMeanwhileIsNotFound() {
    final ServedLease lease = lease();
    reader.hold(1, lease);
    lease.release();
    assertThat(reader.find(1)).isNull();
  }
}
