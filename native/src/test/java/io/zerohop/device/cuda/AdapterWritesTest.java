package io.zerohop.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Device.AdapterWrites;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What the driver's two attributes come to. */
class AdapterWritesTest {

  @ParameterizedTest
  @CsvSource({
    "0, 0, UNORDERED", // a driver that does not know them says the same
    "0, 2, UNORDERED", // streams alone can flush
    "0, 1, FLUSHED",
    "0, 3, FLUSHED",
    "100, 0, ORDERED", // for kernels of this GPU
    "200, 3, ORDERED", // for all
  })
  void writesAreOrderedOrFlushedOrNeither(
      final int ordering, final int flushOptions, final AdapterWrites expected) {
    assertThat(CudaDevice.adapterWrites(ordering, flushOptions)).isEqualTo(expected);
  }
}
