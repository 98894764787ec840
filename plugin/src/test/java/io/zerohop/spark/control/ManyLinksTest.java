package io.zerohop.spark.control;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.scale.Rows;
import io.zerohop.shuffle.scale.Usage;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * What control connections cost, over Spark's transport and TCP: a thousand where rows are wanted
 * ({@link Rows}), else a few. Both ends are in this process.
 */
@Timeout(600)
class ManyLinksTest extends ControlChannelFixture {
  /** Two threads each that answer and ask, one that accepts, and those that connect. */
  private static final int MAX_THREADS = 5 + 16;

  private static int[] counts() {
    return Rows.wanted() ? new int[] {8, 16, 32, 64, 128, 256, 512, 1000} : new int[] {20, 40};
  }

  @Test
  void aConnectionCostsNoThread() throws Exception {
    final SparkControlChannel asks = channels.open(service);
    final SparkControlChannel answers = channels.open(service);
    final ControlLink first = connect(asks, answers); // Classes are loaded, and threads are there.
    final Usage before = Usage.now();
    final List<ControlLink> links = new ArrayList<>();
    for (final int count : counts()) {
      final int more = count - links.size();
      final long begin = System.nanoTime();
      for (int i = 0; i < more; i++) {
        links.add(connect(asks, answers));
      }
      final double connectMicros = (System.nanoTime() - begin) / 1000.0 / more;
      for (final ControlLink link : links) {
        assertThat(answer(link, AskedService.ECHO, "one")).isEqualTo("one");
      }
      final Usage after = Usage.now();
      Rows.write(
          "case",
          "control",
          "peers",
          count,
          "threads_more",
          after.threads() - before.threads(),
          "descriptors_more",
          after.descriptors() - before.descriptors(),
          "pair_heap_bytes",
          (after.heap() - before.heap()) / count,
          "direct_bytes_more",
          after.direct() - before.direct(),
          "connect_us",
          connectMicros);
      assertThat(after.threads()).isLessThanOrEqualTo(before.threads() + MAX_THREADS);
      assertThat(after.descriptors() - before.descriptors())
          .as("a descriptor at either end")
          .isLessThanOrEqualTo(2L * count + 10);
    }
    links.forEach(ControlLink::close);
    first.close();
    Channels.await("the other end has noticed", () -> service.gone.size() == links.size());
  }
}
