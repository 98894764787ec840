package io.zerohop.shuffle.transport.ucx.connect;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.ucx.connect.NodeRates.Way;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class NodeRatesTest {
  private final NodeRates rates = new NodeRates(Clock.system());
  private final AtomicInteger reads = new AtomicInteger();

  @Test
  void eachWayToANodeIsMeasuredOnce() throws Exception {
    final double first = rates.of("a", Way.GET, reads::incrementAndGet);
    final int measured = reads.get();
    assertThat(rates.of("a", Way.GET, reads::incrementAndGet)).isEqualTo(first).isPositive();
    assertThat(reads).hasValue(measured);
    rates.of("a", Way.SEND, reads::incrementAndGet);
    rates.of("b", Way.GET, reads::incrementAndGet);
    assertThat(reads).hasValue(3 * measured);
  }

  @Test
  void whatCouldNotBeMeasuredIsMeasuredAgain() throws Exception {
    assertThatThrownBy(
            () ->
                rates.of(
                    "a",
                    Way.GET,
                    () -> {
                      throw new TimeoutException();
                    }))
        .isInstanceOf(TimeoutException.class);
    rates.of("a", Way.GET, reads::incrementAndGet);
    assertThat(reads.get()).isPositive();
  }
}
