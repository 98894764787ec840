package io.zerohop.shuffle.transport.ucx.jucx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.abort;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.engine.UcxException.OldLibucxException;
import io.zerohop.shuffle.transport.ucx.engine.UcxLoader;
import io.zerohop.shuffle.transport.ucx.jucx.JucxEngine.LibucxVersion;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class LibucxVersionTest {
  @ParameterizedTest
  @CsvSource({"0, 19, 0", "1, 9, 0", "1, 13, 1", "1, 16, 0", "1, 18, 255"})
  void olderThanThoseThatAreUsedIsRefused(final int major, final int minor, final int patch) {
    assertThatThrownBy(() -> new LibucxVersion(major, minor, patch).check())
        .isInstanceOf(OldLibucxException.class)
        .hasMessage(sentence(major + "." + minor + "." + patch));
  }

  private static String sentence(final String version) {
    return "libucx "
        + version
        + " is older than 1.19, with which gets of GPU memory can end an executor: blocks of other"
        + " nodes are sent over Spark's connections";
  }

  @ParameterizedTest
  @CsvSource({"1, 19, 0", "1, 20, 1", "1, 22, 0", "2, 0, 0"})
  void laterOnesAreTaken(final int major, final int minor, final int patch) {
    assertThatCode(() -> new LibucxVersion(major, minor, patch).check()).doesNotThrowAnyException();
  }

  @Test
  void theInstalledLibucxIsRefusedWithOneSentence() {
    try {
      UcxLoader.look();
      abort("the libucx that is installed is used");
    } catch (final OldLibucxException e) {
      final String version = e.getMessage().split(" ")[1];
      assertThat(version).matches("\\d+\\.\\d+\\.\\d+");
      assertThat(e).hasMessage(sentence(version));
      assertThat(
              catchThrowableOfType(
                  OldLibucxException.class,
                  () -> UcxLoader.start(null, null, () -> {}, Clock.system())))
          .hasMessage(e.getMessage());
    } catch (final UcxException e) {
      abort("no libucx is installed: " + e.getMessage());
    }
  }
}
