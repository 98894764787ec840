package io.zerohop.shuffle.transport.ucx.jucx;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class LibucxVersionTest {
  @ParameterizedTest
  @CsvSource({
    // minor release, newer protocols switched off -> gets go into GPU memory
    "12, false, false",
    "13, false, false",
    "15, false, false",
    "15, true, false",
    "16, false, true",
    "16, true, false",
    "18, false, true",
    "18, true, false",
    "19, false, true",
    "22, false, true",
    "22, true, false",
  })
  void getsGoIntoGpuMemoryByTheNewerProtocolsAlone(
      final int minor, final boolean off, final boolean allowed) {
    final String obstacle = new LibucxVersion(1, minor, 1).gpuGetObstacle(off);
    if (allowed) {
      assertThat(obstacle).isNull();
    } else {
      assertThat(obstacle).startsWith("libucx 1." + minor + ".1 ").contains("1.19 or later");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"n", "N", "no", "No", "off", "OFF", "0"})
  void whatUcxTakesForNoIsNo(final String setting) {
    assertThat(JucxEngine.isOff(setting)).isTrue();
  }

  @ParameterizedTest
  @ValueSource(strings = {"y", "yes", "on", "1", "try", ""})
  void whatUcxTakesForYesIsNotNo(final String setting) {
    assertThat(JucxEngine.isOff(setting)).isFalse();
    assertThat(JucxEngine.isOff(null)).isFalse();
  }
}
