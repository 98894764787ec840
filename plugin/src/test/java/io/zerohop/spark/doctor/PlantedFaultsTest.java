package io.zerohop.spark.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.NativeLibrary;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.engine.UcxLoader.UcxLibrary;
import io.zerohop.spark.doctor.Examination.Check;
import io.zerohop.spark.doctor.Examination.Notes;
import io.zerohop.spark.doctor.Finding.Verdict;
import io.zerohop.spark.doctor.Machine.PortCheck;
import io.zerohop.spark.doctor.Machine.SocketCheck;
import io.zerohop.spark.doctor.SparkChecks.SparkCheck;
import io.zerohop.spark.rapids.api.RapidsProbe;
import io.zerohop.spark.rapids.setup.Preflight;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.spark.SparkConf;
import org.apache.spark.storage.BlockManagerId;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import scala.Option;

/**
 * Ten faults that users have, each of which the doctor has to find, and to say what mends it. Those
 * that a test cannot make are played by stand-ins for what would tell of them.
 */
class PlantedFaultsTest {
  private static final Preflight SEEN =
      new Preflight("26.08.0", RapidsProbe.complete(), null, null);
  private static final long HEAP = 1L << 30;

  @TempDir private Path folder;

  private static Finding find(final Item item, final Check check) throws Exception {
    final Notes notes = new Notes();
    check.run(notes);
    final List<Finding> found =
        notes.findings().stream()
            .filter(it -> it.item() == item && it.verdict().compareTo(Verdict.WARN) >= 0)
            .toList();
    assertThat(found).as("%s", notes.findings()).hasSize(1);
    return found.get(0);
  }

  private static Check settings(final SparkConf conf) {
    return new SparkCheck(conf, null, "4.1.3", SEEN, HEAP);
  }

  private static SparkConf conf() {
    return new SparkConf(false)
        .set("spark.shuffle.manager", "io.zerohop.spark.ZerohopShuffleManager")
        .set("spark.plugins", "com.nvidia.spark.SQLPlugin,io.zerohop.spark.ZerohopPlugin");
  }

  private void file(final String name, final String text) throws IOException {
    final Path file = folder.resolve(name);
    Files.createDirectories(file.getParent());
    Files.writeString(file, text);
  }

  private static Check withoutLibucx(final boolean wanted) {
    final Supplier<UcxLibrary> missing =
        () -> {
          throw new UcxException("UCX cannot be used: libucp.so.0: cannot open", null);
        };
    final Finding obstacle = wanted ? null : Item.JUCX.skip("the network is not trusted");
    final UcxCheck.Trial trial =
        new UcxCheck.Trial(
            onStart -> {
              missing.get();
              return null;
            },
            obstacle,
            wanted);
    return new UcxCheck(missing, () -> 0, trial, false);
  }

  @Test
  void libucxIsMissing() throws Exception {
    final Finding found = find(Item.LIBUCX, withoutLibucx(true));
    assertThat(found.verdict()).isEqualTo(Verdict.FAIL);
    assertThat(found.message().happened()).contains("libucp.so.0");
    assertThat(found.message().remedy())
        .contains("libucx 1.19 or later")
        .contains("LD_LIBRARY_PATH");
  }

  @Test
  void whoHasNotAskedForUcxNeedsNone() throws Exception {
    final Notes notes = new Notes();
    withoutLibucx(false).run(notes);
    assertThat(notes.findings()).extracting(Finding::verdict).containsOnly(Verdict.SKIP);
    assertThat(notes.findings().get(0).message().remedy()).contains("between nodes only");
  }

  @Test
  void theSocketFolderBelongsToSomebodyElse() throws Exception {
    NativeLibrary.require();
    Path base = Path.of("/usr"); // Root's.
    if (Descriptor.userId() == 0) {
      base = Files.createDirectory(folder.resolve("sockets"));
      Files.setAttribute(base, "unix:uid", 61_531);
    }
    final Finding found = find(Item.SOCKETS, new SocketCheck(base));
    assertThat(found.verdict()).isEqualTo(Verdict.FAIL);
    assertThat(found.message().happened()).contains("belongs to user");
    assertThat(found.message().remedy()).contains("spark.zerohop.socket.dir");
  }

  @Test
  void tooLittleMemoryMayBeLocked() throws Exception {
    file(
        "proc/self/limits", "Max locked memory         65536                65536         bytes\n");
    file("proc/self/status", "CapEff:\t0000000000000000\nUid:\t1000\t1000\n");
    final Finding found = find(Item.MEMLOCK, limits(8L << 30));
    assertThat(found.verdict()).isEqualTo(Verdict.WARN);
    assertThat(found.message().remedy()).contains("ulimit -l");
  }

  private Check limits(final long shm) {
    return new LimitCheck(
        new SystemFiles(folder),
        new LimitCheck.Room() {
          @Override
          public long memory() {
            return 8L << 30;
          }

          @Override
          public long in(final Path at) {
            return shm;
          }
        },
        true,
        true);
  }

  @Test
  void theCLibraryIsTooOld() throws Exception {
    file("proc/self/maps", "7f0000 r-xp 00000000 00:00 1   /lib/x86_64-linux-gnu/libc.so.6\n");
    file(
        "lib/x86_64-linux-gnu/libc.so.6",
        "\u0001GNU C Library (GNU libc) stable release version 2.12, by R. McGrath\u0000");
    final Finding found = find(Item.GLIBC, new Glibc(new SystemFiles(folder)));
    assertThat(found.verdict()).isEqualTo(Verdict.FAIL);
    assertThat(found.message().happened()).contains("glibc 2.12");
    assertThat(found.message().remedy()).contains("build the jar on a system as old");
  }

  @Test
  void authenticationIsOn() throws Exception {
    final Finding found =
        find(Item.GPU_SHUFFLES, settings(conf().set("spark.authenticate", "true")));
    assertThat(found.message().happened()).contains("spark.authenticate is on");
    assertThat(found.message().remedy())
        .contains("spark.authenticate=false")
        .contains("SECURITY.md");
  }

  @Test
  void theExternalShuffleServiceIsOn() throws Exception {
    final Finding found =
        find(Item.STEPS_ASIDE, settings(conf().set("spark.shuffle.service.enabled", "true")));
    assertThat(found.verdict()).isEqualTo(Verdict.FAIL);
    assertThat(found.message().remedy()).contains("spark.shuffle.service.enabled=false");
  }

  @Test
  void thereIsNoKernelForTheGpu() throws Exception {
    final HostGpus gpus = new HostGpus(1, 0);
    gpus.refusal = "cuda:0: cuModuleLoadDataEx failed: CUDA_ERROR_NO_BINARY_FOR_GPU (209)";
    final Finding found = find(Item.KERNELS, new GpuCheck(gpus, true, () -> 1));
    assertThat(found.verdict()).isEqualTo(Verdict.FAIL);
    assertThat(found.message().happened()).contains("NO_BINARY_FOR_GPU");
    assertThat(found.message().remedy()).contains("ZEROHOP_CUDA_ARCHS");
  }

  @Test
  void devShmIsFull() throws Exception {
    final Finding found = find(Item.SHM, limits(0));
    assertThat(found.verdict()).isEqualTo(Verdict.FAIL);
    assertThat(found.message().remedy())
        .contains("remount,size=1g /dev/shm")
        .contains("--shm-size");
  }

  @Test
  void thePortIsTaken() throws Exception {
    try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLocalHost())) {
      final Map<String, String> settings =
          Map.of(
              "spark.zerohop.port",
              Integer.toString(taken.getLocalPort()),
              "spark.zerohop.ucx.trustedNetwork",
              "true",
              "spark.port.maxRetries",
              "0");
      final Finding found = find(Item.PORT, new PortCheck(settings::get));
      assertThat(found.verdict()).isEqualTo(Verdict.FAIL);
      assertThat(found.message().remedy())
          .contains("spark.zerohop.port")
          .contains("spark.port.maxRetries");
    }
  }

  @Test
  void thePortOfAnotherExecutorIsBlocked() throws Exception {
    final int port;
    try (ServerSocket closed = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      port = closed.getLocalPort();
    }
    final List<BlockManagerId> others = new ArrayList<>();
    others.add(BlockManagerId.apply("7", "127.0.0.1", port, Option.empty()));
    final Finding found = find(Item.REACH, notes -> SparkChecks.reach(notes, others));
    assertThat(found.verdict()).isEqualTo(Verdict.FAIL);
    assertThat(found.message().happened()).contains("executor 7").contains(Integer.toString(port));
    assertThat(found.message().remedy()).contains("firewall").contains("spark.blockManager.port");
  }

  @Test
  void versionsDoNotMatch() throws Exception {
    final Preflight old = new Preflight("24.10.1", RapidsProbe.complete(), null, null);
    final Finding rapids = find(Item.RAPIDS, new SparkCheck(conf(), null, "4.1.3", old, HEAP));
    assertThat(rapids.verdict()).isEqualTo(Verdict.FAIL);
    assertThat(rapids.message().happened()).contains("24.10.1").contains("24.12");
    assertThat(rapids.message().remedy()).contains("rapids-4-spark");
    final Finding spark = find(Item.SPARK, new SparkCheck(conf(), null, "3.4.4", SEEN, HEAP));
    assertThat(spark.message().happened()).contains("3.4.4").contains("3.5");
  }
}
