package io.zerohop.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.Device.FabricReach;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The trial of fabric handles, on a driver that is made up. */
class FabricTrialTest {
  private static final String CLIQUE = "0123456789abcdef0123456789abcdef/7";
  private static final int NOT_PERMITTED = 800;

  private final Set<Long> handles = new HashSet<>();
  private String refused = "";

  private final FabricTrial.Calls driver =
      new FabricTrial.Calls() {
        private byte[] exported;

        private int made(final String call, final long handle, final long[] result) {
          if (refused.equals(call)) {
            return NOT_PERMITTED;
          }
          result[0] = handle;
          assertThat(handles.add(handle)).isTrue();
          return 0;
        }

        @Override
        public int create(final long[] result) {
          return made("cuMemCreate", 11, result);
        }

        @Override
        public int exportFabric(final long handle, final byte[] to) {
          assertThat(handle).isEqualTo(11);
          assertThat(to).hasSize(64);
          to[63] = 5;
          exported = to.clone();
          return refused.equals("cuMemExportToShareableHandle") ? NOT_PERMITTED : 0;
        }

        @Override
        public int importFabric(final byte[] from, final long[] result) {
          assertThat(from).isEqualTo(exported);
          return made("cuMemImportFromShareableHandle", 12, result);
        }

        @Override
        public int release(final long handle) {
          assertThat(handles.remove(handle)).isTrue();
          return 0;
        }
      };

  @Test
  void aHandleThatComesBackInMakesSegmentsReachable() {
    assertThat(FabricTrial.of(driver, () -> CLIQUE)).isEqualTo(new FabricReach(CLIQUE, ""));
    assertThat(handles).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"cuMemCreate", "cuMemExportToShareableHandle", "cuMemImportFromShareableHandle"})
  void aCallThatIsRefusedIsNamedAndNothingIsLeft(final String call) {
    refused = call;
    final FabricReach reach = FabricTrial.of(driver, () -> CLIQUE);
    assertThat(reach.possible()).isFalse();
    assertThat(reach.absence())
        .startsWith(call + " with a fabric handle reported")
        .contains("(800)", "nvidia-imex", "/dev/nvidia-caps-imex-channels/channel0");
    assertThat(handles).isEmpty();
  }

  @Test
  void withoutACliqueThereIsNobodyToHandSegmentsTo() {
    final FabricReach reach = FabricTrial.of(driver, () -> "");
    assertThat(reach.possible()).isFalse();
    assertThat(reach.absence()).contains("NVML names no cluster");
  }
}
