package io.zerohop.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CudaStatusTest {
  /** Numbers, as the driver's header has them: JCuda's names end before some. */
  @ParameterizedTest
  @CsvSource({
    "46, FATAL", // device unavailable
    "214, FATAL", // uncorrectable ECC error
    "401, RETRY", // illegal state, of a resource of the call
    "700, FATAL", // illegal address
    "719, FATAL", // launch failed
    "721, FATAL", // tensor memory leak
    "1, RETRY", // invalid value
    "201, RETRY" // invalid context, of the calling thread
  })
  void aStatusEndsTheExecutorIfTheContextIsLost(final int status, final Category category) {
    final ZerohopException failure = CudaStatus.failure(status, "cuCall", "GPU 0");
    assertThat(failure.category()).isEqualTo(category);
    assertThat(failure).hasMessageContainingAll("cuCall", "GPU 0", "(" + status + ")");
  }
}
