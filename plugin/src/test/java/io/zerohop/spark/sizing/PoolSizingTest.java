package io.zerohop.spark.sizing;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.spark.sizing.PoolSizing.HostMemory;
import io.zerohop.spark.sizing.PoolSizing.MemoryPromises;
import org.apache.spark.SparkConf;
import org.junit.jupiter.api.Test;

/** The default size of the pool in host memory, on machines and in containers that are made up. */
class PoolSizingTest {
  private static final long GIB = 1L << 30;
  private static final long MIB = 1L << 20;

  /** Default of {@code fetch.receiveBuffers}, and of {@code write.buffer} for one task. */
  private static final long RECEIVE_BUFFERS = 512 * MIB;

  private static final long ARENA = 32 * MIB;

  private static SparkConf conf(final String master, final String... settings) {
    final SparkConf conf = new SparkConf(false).set("spark.master", master);
    for (int i = 0; i < settings.length; i += 2) {
      conf.set(settings[i], settings[i + 1]);
    }
    return conf;
  }

  private static HostMemory machine(final long total, final long free, final long heap) {
    return new HostMemory(total, free, Long.MAX_VALUE, heap, 16);
  }

  private static HostMemory limited(final long limit, final long heap) {
    return new HostMemory(256 * GIB, 200 * GIB, limit, heap, 16);
  }

  private static PoolSizing sizing(final SparkConf conf, final HostMemory host) {
    return new PoolSizing(conf, host);
  }

  @Test
  void withoutALimitAQuarterOfWhatIsFree() {
    final HostMemory host = machine(64 * GIB, 40 * GIB, GIB);
    for (final String master : new String[] {"local[*]", "spark://m:7077", "local"}) {
      assertThat(sizing(conf(master), host).bytes()).as(master).isEqualTo(10 * GIB);
      assertThat(sizing(conf(master), host).shortage()).isNull();
    }
  }

  @Test
  void aLimitOverTheMachinesMemoryIsNone() {
    final HostMemory host = new HostMemory(64 * GIB, 40 * GIB, Long.MAX_VALUE - 4095, GIB, 16);
    assertThat(sizing(conf("local[*]"), host).bytes()).isEqualTo(10 * GIB);
  }

  @Test
  void aContainerLeavesWhatIsPromisedToNobodyElse() {
    final long left = 20 * GIB - 10 * GIB - GIB - 4 * ARENA - RECEIVE_BUFFERS;
    assertThat(sizing(conf("local[4]"), limited(20 * GIB, 10 * GIB)).bytes()).isEqualTo(left);
    final SparkConf pod = conf("k8s://api", "spark.executor.cores", "4");
    assertThat(sizing(pod, limited(20 * GIB, 10 * GIB)).bytes()).isEqualTo(left);
  }

  @Test
  void whatIsPromisedToOthersIsTheirs() {
    final String[][] promises = {
      {"spark.memory.offHeap.size", "2g", "spark.memory.offHeap.enabled", "true"},
      {"spark.executor.pyspark.memory", "2048"},
      {"spark.rapids.memory.pinnedPool.size", "2g"},
      {"spark.rapids.memory.host.offHeapLimit.size", "2g"},
      {"spark.zerohop.fetch.receiveBuffers", "2560m"},
      {"spark.zerohop.write.buffer", "544m"},
    };
    final HostMemory host = limited(20 * GIB, 4 * GIB);
    final SparkConf before = conf("k8s://api", "spark.executor.cores", "4");
    final long untouched = sizing(before, host).bytes();
    for (final String[] promise : promises) {
      final SparkConf conf = before.clone();
      conf.set("spark.rapids.memory.host.offHeapLimit.enabled", "" + promise[0].contains("Limit"));
      for (int i = 0; i < promise.length; i += 2) {
        conf.set(promise[i], promise[i + 1]);
      }
      assertThat(untouched - sizing(conf, host).bytes()).as(promise[0]).isEqualTo(2 * GIB);
    }
  }

  @Test
  void whatIsSwitchedOffIsNotPromised() {
    final SparkConf conf = conf("k8s://api", "spark.memory.offHeap.size", "2g");
    conf.set("spark.rapids.memory.host.offHeapLimit.size", "2g");
    final HostMemory host = limited(20 * GIB, 4 * GIB);
    assertThat(sizing(conf, host).bytes()).isEqualTo(sizing(conf("k8s://api"), host).bytes());
  }

  @Test
  void pythonsShareOfAPodIsPythons() {
    final HostMemory pod = limited(14 * GIB, 10 * GIB); // Kubernetes' factor of 0.4.
    final SparkConf conf = conf("k8s://api", "spark.kubernetes.resource.type", "python");
    assertThat(sizing(conf, pod).bytes()).isEqualTo(PoolSizing.MIN_BYTES);
  }

  @Test
  void executorsOfAMachineShareIt() {
    final SparkConf conf = conf("spark://m:7077", "spark.executor.cores", "2");
    final HostMemory host = machine(64 * GIB, 60 * GIB, 4 * GIB);
    final long part = 63 * GIB / 8;
    final long promised = 4 * GIB + 4 * GIB / 10 + 2 * ARENA + RECEIVE_BUFFERS;
    assertThat(sizing(conf, host).bytes()).isEqualTo(part - promised);
  }

  @Test
  void whatIsFreeIsSharedToo() {
    final SparkConf conf = conf("spark://m:7077", "spark.executor.cores", "2");
    assertThat(sizing(conf, machine(512 * GIB, 40 * GIB, 4 * GIB)).bytes()).isEqualTo(5 * GIB);
  }

  @Test
  void aWorkersContainerIsSharedByItsExecutors() {
    final SparkConf conf = conf("spark://m:7077", "spark.executor.cores", "8");
    final long promised = 4 * GIB + 4 * GIB / 10 + 8 * ARENA + RECEIVE_BUFFERS;
    assertThat(sizing(conf, limited(20 * GIB, 4 * GIB)).bytes()).isEqualTo(10 * GIB - promised);
  }

  @Test
  void yarnCountsTheContainerThatSparkAsksFor() {
    final SparkConf conf = conf("yarn", "spark.executor.memoryOverhead", "8g");
    conf.set("spark.executor.instances", "1");
    final HostMemory host = machine(256 * GIB, 204 * GIB, 8 * GIB);
    final long room = 8 * GIB - 8 * GIB / 10 - ARENA - RECEIVE_BUFFERS;
    assertThat(sizing(conf, host).bytes()).isEqualTo(room); // And not 51 GiB.
    conf.set("spark.executor.instances", "4");
    assertThat(sizing(conf, host).bytes()).isEqualTo(room / 4);
    conf.set("spark.executor.instances", "40"); // 16 containers of 16 GiB fit.
    assertThat(sizing(conf, host).bytes()).isEqualTo(room / 16);
    conf.set("spark.dynamicAllocation.enabled", "true");
    assertThat(sizing(conf, host).bytes()).isEqualTo(room / 16);
  }

  @Test
  void aSizeThatTheContainerDoesNotHaveIsSaidWithWhatMakesItFit() {
    final HostMemory host = machine(256 * GIB, 204 * GIB, GIB);
    final SparkConf conf = conf("yarn", "spark.executor.instances", "2");
    conf.set("spark.executor.memoryOverhead", "384m");
    assertThat(sizing(conf, host).excess(GIB).toString())
        .contains("spark.zerohop.pool.size is 1024 MiB")
        .contains("spark.executor.memoryOverhead=2976m");
    conf.set("spark.executor.memoryOverhead", "2976m");
    assertThat(sizing(conf, host).excess(GIB)).isNull();
    assertThat(sizing(conf("k8s://api"), limited(2 * GIB, GIB)).excess(GIB)).isNotNull();
    assertThat(
            sizing(conf("spark://m:7077"), limited(20 * GIB, 4 * GIB)).excess(40 * GIB).toString())
        .contains("control group");
    // Nobody watches it there.
    assertThat(sizing(conf("local[4]"), host).excess(512 * GIB)).isNull();
  }

  @Test
  void offHeapAndPythonEnlargeTheContainerAndNotThePool() {
    final SparkConf conf = conf("yarn", "spark.executor.memoryOverhead", "8g");
    final HostMemory host = machine(256 * GIB, 204 * GIB, 8 * GIB);
    final long before = sizing(conf, host).bytes();
    conf.set("spark.memory.offHeap.enabled", "true").set("spark.memory.offHeap.size", "4g");
    conf.set("spark.executor.pyspark.memory", "2g");
    assertThat(sizing(conf, host).bytes()).isEqualTo(before);
  }

  @Test
  void aFullContainerHasASmallPoolAndTheLogNamesAnOverheadThatIsEnough() {
    for (final String master : new String[] {"k8s://api", "yarn"}) {
      final SparkConf conf = conf(master);
      final PoolSizing full = sizing(conf, pod(conf));
      assertThat(full.bytes()).isEqualTo(PoolSizing.MIN_BYTES);
      assertThat(full.shortage().toString())
          .contains("heap 4096", "write.buffer", "receiveBuffers 512");
      final String overhead =
          full.shortage()
              .remedy()
              .replaceFirst("(?s).*spark.executor.memoryOverhead=(\\d+m).*", "$1");
      conf.set("spark.executor.memoryOverhead", overhead);
      final PoolSizing enlarged = sizing(conf, pod(conf));
      assertThat(enlarged.bytes()).isBetween(PoolSizing.SMALL_BYTES, PoolSizing.SMALL_BYTES + MIB);
      assertThat(enlarged.shortage()).isNull();
    }
  }

  private static HostMemory pod(final SparkConf conf) {
    return limited(MemoryPromises.containerBytes(conf, 4 * GIB), 4 * GIB);
  }

  @Test
  void aMachineThatIsPromisedAwayHasASmallPoolToo() {
    final PoolSizing full = sizing(conf("spark://m:7077"), machine(64 * GIB, 60 * GIB, 62 * GIB));
    assertThat(full.bytes()).isEqualTo(PoolSizing.MIN_BYTES);
    assertThat(full.shortage().toString())
        .contains("spark.executor.memory", "spark.zerohop.pool.size=512m");
    final PoolSizing limited = sizing(conf("local[*]"), limited(8 * GIB, 8 * GIB));
    assertThat(limited.shortage().remedy()).contains("control group to 10");
  }
}
