package io.zerohop.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class JarVersionTest {

  @Test
  void theSameReleaseAndClassesWithoutAJarGoTogether() {
    assertThat(JarVersion.own()).as("not from a jar here").isEmpty();
    assertThatCode(() -> JarVersion.check("1.2.0", "1.2.0", "1")).doesNotThrowAnyException();
    assertThatCode(() -> JarVersion.check("", "1.2.0", "1")).doesNotThrowAnyException();
    assertThatCode(() -> JarVersion.check("1.2.0", "", "1")).doesNotThrowAnyException();
  }

  @Test
  void anotherReleaseIsRefusedByName() {
    assertThatThrownBy(() -> JarVersion.check("1.2.0", "1.3.0", "7"))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("driver has Zerohop 1.2.0 and executor 7 has 1.3.0");
    assertThatThrownBy(() -> JarVersion.check(null, "1.3.0", "7"))
        .hasMessageContaining("of an older release");
  }
}
