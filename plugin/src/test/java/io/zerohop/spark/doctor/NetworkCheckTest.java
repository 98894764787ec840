package io.zerohop.spark.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.remote.Carrier.Completion;
import io.zerohop.shuffle.transport.ucx.adapter.AdapterChoice;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxMemory;
import io.zerohop.shuffle.transport.ucx.engine.UcxException.OldLibucxException;
import io.zerohop.shuffle.transport.ucx.engine.UcxLoader.UcxLibrary;
import io.zerohop.spark.doctor.Examination.Notes;
import io.zerohop.spark.doctor.Finding.Verdict;
import io.zerohop.spark.doctor.Machine.AdapterCheck;
import io.zerohop.spark.doctor.RateCheck.UcxRate;
import io.zerohop.spark.doctor.Settings.Wanted;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;

/** UCX and adapters, by an engine that copies within this process, and by made-up ports. */
class NetworkCheckTest {
  private static final UcxLibrary LOOKED = new UcxLibrary("the fake jucx", true);

  private static final int VERSION = 0x011401;

  private final FakeEngine engine = new FakeEngine();

  private List<Finding> ucx(final boolean gpus) {
    final Notes notes = new Notes();
    final UcxCheck.Trial trial = new UcxCheck.Trial(onStart -> engine, null, true);
    new UcxCheck(() -> LOOKED, () -> VERSION, trial, gpus).run(notes);
    assertThat(engine.ended).isTrue();
    return notes.findings();
  }

  private static Finding one(final List<Finding> findings, final Item item) {
    assertThat(findings.stream().filter(it -> it.item() == item)).hasSize(1);
    return findings.stream().filter(it -> it.item() == item).findFirst().orElseThrow();
  }

  @Test
  void aLibucxThatIsTooOldIsAFailureWithTheSentenceThatExecutorsSay() {
    final String sentence = "libucx 1.13.1 is older than 1.19";
    for (final Finding obstacle : new Finding[] {null, Item.JUCX.skip("not tried")}) {
      final Notes notes = new Notes();
      final UcxCheck.Trial trial =
          new UcxCheck.Trial(
              onStart -> {
                throw new OldLibucxException(sentence);
              },
              obstacle,
              true);
      final Supplier<UcxLibrary> library =
          () -> {
            throw new OldLibucxException(sentence);
          };
      new UcxCheck(library, () -> 0x010d01, trial, false).run(notes);
      final Finding found = one(notes.findings(), Item.LIBUCX);
      assertThat(found.verdict()).isEqualTo(Verdict.FAIL);
      assertThat(found.message().happened()).isEqualTo(sentence);
      assertThat(found.message().remedy()).contains("1.19 or later");
      assertThat(one(notes.findings(), Item.JUCX).verdict()).isEqualTo(Verdict.SKIP);
    }
  }

  @Test
  void withoutCudaGpuMemoryTakesADetour() {
    engine.gpuMemory = false;
    final Finding found = one(ucx(true), Item.LIBUCX);
    assertThat(found.verdict()).isEqualTo(Verdict.WARN);
    assertThat(found.message().remedy()).contains("built with CUDA");
    assertThat(one(ucx(false), Item.LIBUCX).verdict()).isEqualTo(Verdict.OK);
  }

  @Test
  void aJucxOfAnotherKindIsNamedWithItsMend() {
    assertThat(one(ucx(false), Item.JUCX).verdict()).isEqualTo(Verdict.OK);
    engine.failure = "Invalid parameter";
    final Finding found = one(ucx(false), Item.JUCX);
    assertThat(found.verdict()).isEqualTo(Verdict.FAIL);
    assertThat(found.message().happened()).contains("the fake jucx").contains("Invalid parameter");
    assertThat(found.message().remedy()).contains("spark.zerohop.ucx.jucx");
  }

  @Test
  void getsAreMeasured() {
    assertThat(UcxRate.measure(onStart -> engine)).isPositive();
    assertThat(engine.ended).isTrue();
  }

  @Test
  void whatMayNotBeStartedIsLookedAtOnly() {
    final Notes notes = new Notes();
    final Finding obstacle = Item.JUCX.skip("not trusted");
    final UcxCheck.Trial trial =
        new UcxCheck.Trial(
            onStart -> {
              throw new AssertionError("it was started");
            },
            obstacle,
            false);
    new UcxCheck(() -> LOOKED, () -> VERSION, trial, false).run(notes);
    assertThat(one(notes.findings(), Item.LIBUCX).message().happened()).isEqualTo("libucx 1.20.1");
    assertThat(one(notes.findings(), Item.JUCX)).isEqualTo(obstacle);
  }

  private static List<Finding> adapters(
      final boolean present, final List<String> ports, final boolean dmaBuf, final boolean module) {
    final Notes notes = new Notes();
    final AdapterChoice choice = new AdapterChoice(ports, false, "for a test");
    new AdapterCheck(true, present, choice, List.of(dmaBuf), module).run(notes);
    return notes.findings();
  }

  @Test
  void adaptersThatCannotBeUsedAreAWarning() {
    assertThat(one(adapters(false, List.of(), true, true), Item.ADAPTERS).verdict())
        .isEqualTo(Verdict.SKIP);
    assertThat(one(adapters(true, List.of(), true, true), Item.ADAPTERS).message().remedy())
        .contains("/dev/infiniband");
    final Finding used = one(adapters(true, List.of("mlx5_0:1"), true, true), Item.ADAPTERS);
    assertThat(used.verdict()).isEqualTo(Verdict.OK);
    assertThat(used.message().happened()).contains("mlx5_0:1: for a test");
  }

  @Test
  void eitherPeermemOrDmaBufWillDo() {
    final List<String> ports = List.of("mlx5_0:1");
    assertThat(one(adapters(true, ports, true, false), Item.GPUDIRECT).verdict())
        .isEqualTo(Verdict.OK);
    assertThat(one(adapters(true, ports, false, true), Item.GPUDIRECT).verdict())
        .isEqualTo(Verdict.OK);
    final Finding neither = one(adapters(true, ports, false, false), Item.GPUDIRECT);
    assertThat(neither.verdict()).isEqualTo(Verdict.WARN);
    assertThat(neither.message().remedy()).contains("modprobe nvidia-peermem");
  }

  @Test
  void settingsAreReadWithoutSpark() {
    final Wanted wanted =
        Wanted.of(
            Settings.of(
                Map.of(
                    "spark.zerohop.socket.dir", "/run/z",
                    "spark.zerohop.ucx.trustedNetwork", "true",
                    "spark.plugins", "a.B, com.nvidia.spark.SQLPlugin")));
    assertThat(wanted.conf().socketDir()).hasToString("/run/z");
    assertThat(wanted.ucx()).isTrue();
    assertThat(wanted.rapids()).isTrue();
    final Wanted nothing = Wanted.of(Settings.of(Map.of()));
    assertThat(nothing.conf().socketDir()).isNull();
    assertThat(nothing.conf().ucx().jucx()).isNull();
    assertThat(nothing.rapids()).isFalse();
    assertThat(nothing.noPort()).asString().contains("spark.zerohop.ucx.trustedNetwork=true");
  }

  /** Copies what it is asked to get. */
  private static final class FakeEngine implements UcxEngine {
    private boolean gpuMemory = true;
    private boolean ended;
    private String failure;

    @Override
    public String describe() {
      return "the fake jucx";
    }

    @Override
    public boolean reachesGpuMemory() {
      return gpuMemory;
    }

    @Override
    public boolean rdma() {
      return false;
    }

    @Override
    public long events() {
      return 0;
    }

    @Override
    public byte[] address() {
      return new byte[1];
    }

    @Override
    public UcxMemory register(final Tier kind, final long address, final long bytes) {
      return new UcxMemory() {
        @Override
        public byte[] key() {
          return new byte[1];
        }

        @Override
        public void close() {}
      };
    }

    @Override
    public UcxEndpoint connect(final byte[] address, final Consumer<String> onFailure) {
      return new Self(failure);
    }

    @Override
    public int pending() {
      return 0;
    }

    @Override
    public boolean end() {
      ended = true;
      return true;
    }
  }

  /** The way from it to itself. */
  private record Self(String failure) implements UcxEndpoint {
    @Override
    public void get(
        final byte[] key,
        final long remoteAddress,
        final long localAddress,
        final long bytes,
        final UcxMemory gpu,
        final Completion done) {
      new UnsafeBuffer(localAddress, (int) bytes)
          .putBytes(0, new UnsafeBuffer(remoteAddress, (int) bytes), 0, (int) bytes);
      done.done(failure);
    }

    @Override
    public void close() {}
  }
}
