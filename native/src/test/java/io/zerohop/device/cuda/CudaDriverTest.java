package io.zerohop.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.ZerohopException;
import org.junit.jupiter.api.Test;

class CudaDriverTest {
  /** Holds with and without a GPU: the jar starts everywhere, and says in words what is missing. */
  @Test
  void saysWhyThereIsNoGpuInsteadOfFailing() {
    if (CudaDriver.present()) {
      assertThat(CudaDriver.absence()).isNull();
      assertThat(CudaDriver.devices()).isPositive();
    } else {
      assertThat(CudaDriver.absence().text()).containsAnyOf("no CUDA driver", "shows no GPU");
      assertThat(CudaDriver.devices()).isZero();
      assertThatThrownBy(() -> new CudaDevice(0, 1))
          .isInstanceOfSatisfying(
              ZerohopException.class,
              e -> assertThat(e.category()).isEqualTo(ZerohopException.Category.FALLBACK))
          .hasMessageContaining(CudaDriver.absence().text());
    }
  }

  @Test
  void refusesGpusThatAreNotThere() {
    for (final int ordinal : new int[] {-1, CudaDriver.devices()}) {
      assertThatThrownBy(() -> new CudaDevice(ordinal, 1))
          .isInstanceOfSatisfying(
              ZerohopException.class,
              e -> assertThat(e.category()).isEqualTo(ZerohopException.Category.FALLBACK));
    }
  }
}
