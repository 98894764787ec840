package io.zerohop.spark.task;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.scale.Rows;
import io.zerohop.shuffle.scale.Usage;
import io.zerohop.spark.compat.SparkLinks;
import java.util.Arrays;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.spark.MapOutputTracker;
import org.apache.spark.MapSizesByExecutorId;
import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import scala.Option;

/**
 * What our locations add to the driver's map statuses, and what a reduce task makes of them: with
 * up to a thousand executors where rows are wanted ({@link Rows}), else with a few.
 */
@Timeout(600)
class ReduceTaskPlanTest {
  private static final int MAPS = Rows.wanted() ? 10_000 : 400;
  private static final int PARTITIONS = Rows.wanted() ? 10_000 : 2_500;
  private static final int BLOCK = 4096;

  static IntStream sizes() {
    return Rows.wanted()
        ? IntStream.of(2, 8, 16, 32, 64, 128, 256, 512, 1000)
        : IntStream.of(2, 32);
  }

  private static String location(final int executor) {
    return new Location(
            String.format(Locale.ROOT, "%08x", executor / 8 * 0x9e3779b9L & 0xffffffffL),
            String.format(Locale.ROOT, "%016x", executor / 8 * 0x9e3779b97f4a7c15L),
            executor * 0x9e3779b97f4a7c15L + 1,
            7000 + executor,
            Location.socketName(Integer.toString(executor), executor * 0x9e3779b97f4a7c15L + 1))
        .encode();
  }

  private static MapStatus[] statuses(final int executors, final boolean located) {
    final long[] sizes = new long[PARTITIONS];
    Arrays.fill(sizes, BLOCK);
    return IntStream.range(0, MAPS)
        .mapToObj(
            map -> {
              final int executor = map % executors;
              final Option<String> place =
                  located ? Option.apply(location(executor)) : Option.empty();
              final BlockManagerId at =
                  BlockManagerId.apply(
                      Integer.toString(executor), "host-" + executor / 8, 7337, place);
              return SparkLinks.newMapStatus(at, sizes, map, 0);
            })
        .toArray(MapStatus[]::new);
  }

  private static int bytes(final MapStatus[] statuses) {
    return MapOutputTracker.serializeOutputStatuses(
            statuses, null, true, Integer.MAX_VALUE, new SparkConf(false))
        ._1()
        .length;
  }

  private static MapSizesByExecutorId listed(final MapStatus[] statuses, final int partition) {
    return MapOutputTracker.convertMapStatuses(
        1, partition, partition + 1, statuses, 0, statuses.length, Option.empty());
  }

  @ParameterizedTest
  @MethodSource("sizes")
  void locationsAreSharedAndPlansAreLinear(final int executors) {
    final MapStatus[] statuses = statuses(executors, true);
    final Set<Object> locations = Collections.newSetFromMap(new IdentityHashMap<>());
    for (final MapStatus status : statuses) {
      locations.add(status.location());
    }
    assertThat(locations).as("one object for an executor").hasSize(executors);
    final int with = bytes(statuses);
    final int without = bytes(statuses(executors, false));
    assertThat(with - without)
        .as("what locations add to %s bytes", without)
        .isLessThan(10 * MAPS + Location.MAX_ENCODED_BYTES * executors);

    final double spark = Usage.cpuMicros(() -> drain(statuses));
    final double both = Usage.cpuMicros(() -> sources(statuses));
    final List<BlockSource> sources = sources(statuses);
    assertThat(sources).hasSize(executors);
    assertThat(sources.stream().mapToInt(it -> it.blocks().size()).sum()).isEqualTo(MAPS);
    Rows.write(
        "case", "driver",
        "executors", executors,
        "maps", MAPS,
        "partitions", PARTITIONS,
        "statuses_bytes", with,
        "location_bytes", with - without,
        "locations", locations.size(),
        "spark_plan_us", spark,
        "plan_us", both);
  }

  private static int drain(final MapStatus[] statuses) {
    int blocks = 0;
    for (var owners = listed(statuses, 7).iter(); owners.hasNext(); ) {
      blocks += owners.next()._2().size();
    }
    return blocks;
  }

  private static List<BlockSource> sources(final MapStatus[] statuses) {
    return ReduceTask.sources(listed(statuses, 7).iter(), 7, 0);
  }
}
