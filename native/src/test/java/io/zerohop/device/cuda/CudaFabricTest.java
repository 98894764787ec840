package io.zerohop.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.OpaqueHandle;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;

/** What the trial of fabric handles makes of this machine's driver, and that descriptors stay. */
@EnabledIf(value = "io.zerohop.device.cuda.Gpus#one", disabledReason = "no GPU here")
class CudaFabricTest {

  @Test
  void segmentsHaveFabricHandlesWhereTheTrialWorkedAndDescriptorsAnyway() {
    try (CudaDevice device = CudaDevice.inFabric(0, 1);
        Segment segment = device.allocate(1)) {
      System.out.println("fabric: " + device.fabric());
      try (SegmentHandle descriptor = segment.export();
          Segment mapped = device.map(segment.export(), "itself")) {
        assertThat(descriptor.kind()).isEqualTo(SegmentHandle.Kind.POSIX_FD);
        assertThat(mapped.bytes()).isEqualTo(segment.bytes());
      }
      final SegmentHandle handle = segment.exportFabric();
      if (device.fabric().possible()) {
        device.map(handle, "itself").close();
      } else {
        assertThat(handle).isNull();
        assertThat(device.fabric().absence()).isNotEmpty();
        assertThat(device.describe()).contains(device.fabric().absence());
      }
    }
  }

  @Test
  void aHandleOfNobodysIsRefused() {
    try (CudaDevice device = CudaDevice.inFabric(0, 1)) {
      final SegmentHandle handle =
          new OpaqueHandle(SegmentHandle.Kind.FABRIC, device.granularity(), new byte[64]);
      assertThatThrownBy(() -> device.map(handle, "executor 9"))
          .isInstanceOfSatisfying(
              ZerohopException.class,
              e -> assertThat(e.category()).isEqualTo(ZerohopException.Category.FALLBACK))
          .hasMessageContaining("its fabric handle was not taken");
      assertThat(device.openResources()).isZero();
    }
  }
}
