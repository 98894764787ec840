package io.zerohop.shuffle.transport.ucx;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.transport.ucx.TestReads.GetKind;
import io.zerohop.shuffle.transport.ucx.TestReads.GpuReach;
import io.zerohop.shuffle.transport.ucx.TestReads.SelfTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What is made of what first contact has shown. */
class SelfTestTest {
  private static final double SLOW = 1e9;
  private static final double FAST = 20e9;

  @ParameterizedTest
  @CsvSource({
    // adapters, gets -> host memory is got
    "true, ONE_SIDED, true",
    "true, UNKNOWN, true",
    "true, EMULATED, false",
    "false, ONE_SIDED, false",
    "false, EMULATED, false",
  })
  void hostMemoryIsGotWhereAnAdapterDoesIt(
      final boolean rdma, final GetKind gets, final boolean got) {
    final SelfTest test = new SelfTest(rdma, gets, FAST, GetKind.NONE, 0);
    assertThat(test.takesHost()).isEqualTo(got);
    assertThat(test.takesGpu()).isFalse();
  }

  @ParameterizedTest
  @CsvSource({
    // adapters, gets -> GPU to GPU
    "false, ONE_SIDED, true",
    "true, ONE_SIDED, true",
    "false, EMULATED, false",
    "true, EMULATED, false",
    "false, UNKNOWN, false",
    "true, UNKNOWN, true",
    "true, FAILED, false",
  })
  void gpuMemoryIsGotWhereTheOwnerHasNoPartInIt(
      final boolean rdma, final GetKind gets, final boolean got) {
    assertThat(new SelfTest(rdma, GetKind.EMULATED, SLOW, gets, FAST).takesGpu()).isEqualTo(got);
  }

  @Test
  void theLineSaysWhatIsGotAndWhatIsMissing() {
    final SelfTest good = new SelfTest(true, GetKind.ONE_SIDED, FAST, GetKind.NONE, 0);
    assertThat(good.describe(true, GpuReach.NO_GPU)).isEqualTo("one-sided gets, 20.0 GB/s");
    final SelfTest emulated = new SelfTest(true, GetKind.EMULATED, SLOW, GetKind.NONE, 0);
    assertThat(emulated.describe(false, GpuReach.NO_GPU))
        .startsWith("host memory: sent, since libucx emulates gets although both")
        .endsWith("[ZH-4031]");
    final SelfTest tcp = new SelfTest(false, GetKind.EMULATED, SLOW, GetKind.NONE, 0);
    assertThat(tcp.describe(false, GpuReach.NOT_THERE))
        .startsWith("host memory: sent, since this node or the other has no RDMA device")
        .contains("; GPU memory: sent, since the other node has no GPU memory");
  }

  @Test
  void theLineSaysHowGpuMemoryIsGot() {
    final SelfTest test = new SelfTest(false, GetKind.EMULATED, SLOW, GetKind.ONE_SIDED, FAST);
    assertThat(test.describe(false, GpuReach.DIRECT))
        .endsWith("GPU memory: one-sided gets, 20.0 GB/s");
    assertThat(test.describe(false, GpuReach.EMULATED))
        .contains("GPU memory: sent, since gets of it are emulated (over NVLink they need libucx");
  }
}
