package io.zerohop.spark.sizing;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.sizing.PoolSizing.HostMemory;
import java.util.Random;
import java.util.function.Supplier;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

/**
 * Over configurations and machines at random: as many executors as can be in one place hold no more
 * than there is, each with all that is promised to it and a full pool. Sums are added up here from
 * what was drawn and not from what the code under test made of it.
 */
class PoolPromisesTest {
  private static final long GIB = 1L << 30;
  private static final long MIB = 1L << 20;
  private static final int CASES = 20_000;

  private final Random random = new Random(4);
  private int pools;
  private int full;

  /** One executor: its configuration, and what it holds beside its pool, in bytes. */
  private final class Executor {
    final SparkConf conf = new SparkConf(false);
    final int cores = 1 + random.nextInt(8);
    final long heap = upTo(32 * GIB) + 256 * MIB;
    final long offHeap = maybe(16 * GIB);
    final long python = maybe(8 * GIB);
    final long pinned = maybe(8 * GIB);
    final long receiveBuffers = MIB + upTo(2 * GIB);
    final long buffer = MIB + upTo(128 * MIB);
    final long keeper = random.nextBoolean() ? 256 * MIB : 0;
    final long overhead = 384 * MIB + upTo(24 * GIB);
    final long held;
    final long container = heap + overhead + offHeap + python;

    Executor(final String master) {
      conf.set("spark.master", master)
          .set("spark.executor.cores", "" + cores)
          .set("spark.executor.memoryOverhead", overhead / MIB + "m")
          .set("spark.memory.offHeap.enabled", "" + (offHeap > 0))
          .set("spark.memory.offHeap.size", "" + offHeap)
          .set("spark.rapids.memory.pinnedPool.size", "" + pinned)
          .set("spark.zerohop.fetch.receiveBuffers", "" + receiveBuffers)
          .set("spark.zerohop.keeper", "" + (keeper > 0))
          .set("spark.zerohop.write.buffer", "" + buffer);
      if (python > 0) {
        conf.set("spark.executor.pyspark.memory", python / MIB + "m");
      }
      final long jvm = Math.max(384 * MIB, heap / 10);
      held = heap + jvm + offHeap + python + pinned + receiveBuffers + keeper + buffer * cores;
    }
  }

  private long upTo(final long bytes) {
    return (long) (random.nextDouble() * bytes) / MIB * MIB;
  }

  private long maybe(final long bytes) {
    return random.nextBoolean() ? upTo(bytes) : 0;
  }

  private HostMemory host(final Executor executor, final long total, final long limit) {
    final long free = upTo(total);
    return new HostMemory(total, free, limit, executor.heap, 1 + random.nextInt(64));
  }

  /** The pool, if it is more than the least; then this many of them and the rest must fit. */
  private void check(
      final Executor executor,
      final HostMemory host,
      final long holders,
      final long pools,
      final long bound) {
    final PoolSizing sizing = new PoolSizing(executor.conf, host);
    final Supplier<String> drawn = () -> host + " " + executor.conf.toDebugString();
    if (sizing.bytes() == PoolSizing.MIN_BYTES) {
      full++;
      assertThat(sizing.shortage()).as(drawn).isNotNull();
      return;
    }
    this.pools++;
    assertThat(holders * executor.held + pools * sizing.bytes())
        .as(drawn)
        .isLessThanOrEqualTo(bound);
  }

  private void bothWereSeen() {
    assertThat(pools).isGreaterThan(CASES / 20);
    assertThat(full).isGreaterThan(CASES / 20);
  }

  @Test
  void aPodHoldsItsOwn() {
    for (int i = 0; i < CASES; i++) {
      final Executor executor = new Executor("k8s://api");
      final HostMemory host = host(executor, 512 * GIB, executor.container);
      check(executor, host, 1, 1, executor.container);
    }
    bothWereSeen();
  }

  @Test
  void aContainerOfYarnHoldsAllPoolsThatItMaps() {
    for (int i = 0; i < CASES; i++) {
      final Executor executor = new Executor("yarn");
      final int instances = 1 + random.nextInt(20);
      executor.conf.set("spark.executor.instances", "" + instances);
      final long total = executor.container + upTo(512 * GIB);
      final HostMemory host = host(executor, total, Long.MAX_VALUE);
      final long here = Math.min(instances, total / executor.container);
      check(executor, host, 1, here, executor.container);
    }
    bothWereSeen();
  }

  @Test
  void aMachineOrAWorkersContainerHoldsItsExecutors() {
    for (int i = 0; i < CASES; i++) {
      final Executor executor = new Executor("spark://m:7077");
      final long total = executor.heap + upTo(512 * GIB);
      final boolean limited = random.nextBoolean();
      final long limit = limited ? executor.heap + upTo(total - executor.heap) : Long.MAX_VALUE;
      final HostMemory host = host(executor, total, limit);
      final long bound = Math.min(total, limit);
      // Workers hand out cores and heaps, and never more than there are.
      final long here =
          Math.max(1, Math.min(host.processors() / executor.cores, bound / executor.heap));
      check(executor, host, here, here, bound);
    }
    bothWereSeen();
  }

  @Test
  void aDriverThatRunsTasksHoldsItsOwn() {
    for (int i = 0; i < CASES; i++) {
      final Executor executor = new Executor("local");
      executor.conf.set("spark.master", "local[" + executor.cores + "]");
      final long total = executor.heap + upTo(128 * GIB);
      final long limit = random.nextBoolean() ? upTo(total) : Long.MAX_VALUE;
      check(executor, host(executor, total, limit), 1, 1, Math.min(total, limit));
    }
    bothWereSeen();
  }

  @Test
  void thePoolsOfAMachineFitIntoWhatIsFree() {
    for (int i = 0; i < CASES; i++) {
      final Executor executor = new Executor("spark://m:7077");
      final HostMemory host = host(executor, executor.heap + upTo(512 * GIB), Long.MAX_VALUE);
      final long pool = new PoolSizing(executor.conf, host).bytes();
      final long here = Math.max(1, host.processors() / executor.cores);
      final long most = Math.min(here, host.totalBytes() / executor.heap);
      assertThat(pool == PoolSizing.MIN_BYTES || most * pool <= host.availableBytes()).isTrue();
    }
  }
}
