package io.zerohop.device.posix;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.ZerohopException;
import org.junit.jupiter.api.Test;

final class JarLibraryTest {
  @Test
  void aLibraryThatTheJarLacksIsNamed() {
    assertThatThrownBy(() -> JarLibrary.load("/lib/libnone.so"))
        .isInstanceOfSatisfying(
            ZerohopException.class,
            e -> assertThat(e.category()).isEqualTo(ZerohopException.Category.FALLBACK))
        .hasMessageContaining("this jar has no /lib/libnone.so");
  }
}
