package io.zerohop.shuffle.transport.ucx.connect;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What is made of what first contact has shown. */
class SelfTestTest {
  private static final double SLOW = 1e9;
  private static final double FAST = 20e9;

  @ParameterizedTest
  @CsvSource({
    // adapters, gets, their rate, that of messages -> by message
    "true, ONE_SIDED, 1, 2, false",
    "true, EMULATED, 2, 1, true",
    "true, UNKNOWN, 2, 1, false",
    "true, UNKNOWN, 1, 2, true",
    "true, NONE, 0, 1, true",
    "false, ONE_SIDED, 2, 1, true",
    "false, EMULATED, 2, 1, true",
  })
  void getsFromTheHostAreTakenWhereAnAdapterDoesThem(
      final boolean rdma,
      final GetKind gets,
      final double getRate,
      final double sendRate,
      final boolean byMessage) {
    final SelfTest test = new SelfTest(rdma, gets, getRate, sendRate, GetKind.NONE, 0);
    assertThat(test.byMessage()).isEqualTo(byMessage);
    assertThat(test.direct()).isFalse();
  }

  @ParameterizedTest
  @CsvSource({
    // adapters, gets, their rate, that of messages -> GPU to GPU
    "false, ONE_SIDED, 2, 1, true",
    "false, ONE_SIDED, 1, 2, false",
    "false, EMULATED, 20, 1, false",
    "false, UNKNOWN, 20, 1, true",
    "false, UNKNOWN, 2, 1, false",
    "true, UNKNOWN, 2, 1, true",
    "true, FAILED, 0, 1, false",
  })
  void getsBetweenGpusAreTakenWhereTheOwnerHasNoPartInThem(
      final boolean rdma,
      final GetKind gets,
      final double gigabytes,
      final double sendGigabytes,
      final boolean direct) {
    final SelfTest test =
        new SelfTest(rdma, GetKind.EMULATED, 0, sendGigabytes * 1e9, gets, gigabytes * 1e9);
    assertThat(test.direct()).isEqualTo(direct);
  }

  @Test
  void theLineSaysWhoDoesTheWorkAndWhatIsMissing() {
    final SelfTest good = new SelfTest(true, GetKind.ONE_SIDED, FAST, 0, GetKind.NONE, 0);
    assertThat(good.describe(good.byMessage(), GpuReach.NO_GPU))
        .isEqualTo("one-sided gets, 20.0 GB/s");
    final SelfTest emulated = new SelfTest(true, GetKind.EMULATED, SLOW, FAST, GetKind.NONE, 0);
    assertThat(emulated.describe(emulated.byMessage(), GpuReach.NO_GPU))
        .startsWith(
            "messages, 20.0 GB/s (emulated gets: 1.0 GB/s); not zero-copy: libucx emulates");
    final SelfTest tcp = new SelfTest(false, GetKind.NONE, 0, SLOW, GetKind.NONE, 0);
    assertThat(tcp.describe(tcp.byMessage(), GpuReach.NOT_THERE))
        .startsWith("messages, 1.0 GB/s; not zero-copy: this node or the other has no RDMA device")
        .contains("GPU memory: over pinned host memory at both ends, since the other node has no");
  }

  @Test
  void theLineSaysHowGpuMemoryIsGot() {
    final SelfTest test =
        new SelfTest(false, GetKind.EMULATED, SLOW, SLOW, GetKind.ONE_SIDED, FAST);
    assertThat(test.describe(true, GpuReach.DIRECT))
        .endsWith("GPU memory: one-sided gets, 20.0 GB/s");
    assertThat(test.describe(true, GpuReach.SLOW))
        .endsWith("gets of it are slower: 20.0 GB/s [ZH-4048]");
    assertThat(test.describe(true, GpuReach.EMULATED)).contains("emulated and have 20.0 GB/s");
  }
}
