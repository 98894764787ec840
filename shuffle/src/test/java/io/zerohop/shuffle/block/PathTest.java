package io.zerohop.shuffle.block;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class PathTest {
  @ParameterizedTest
  @EnumSource(Path.class)
  void eachPathHasALinkThatStandsForIt(final Path path) {
    assertThat(Link.of(path).path()).isEqualTo(path);
  }

  @ParameterizedTest
  @EnumSource(Path.class)
  void aBlockIsReadInPlaceOrMovedOrStaged(final Path path) {
    assertThat(path.isInPlace() ? 1 : 0)
        .as("%s is one of these", path)
        .isEqualTo(1 - (path.isMoved() ? 1 : 0) - (path == Path.STAGED ? 1 : 0));
  }
}
