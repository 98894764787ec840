package io.zerohop.shuffle.block;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class BlockPathTest {
  @ParameterizedTest
  @EnumSource(BlockPath.class)
  void eachPathHasALinkThatStandsForIt(final BlockPath path) {
    assertThat(Link.of(path).path()).isEqualTo(path);
  }

  @ParameterizedTest
  @EnumSource(BlockPath.class)
  void aBlockIsReadInPlaceOrMovedOrStaged(final BlockPath path) {
    assertThat(path.isInPlace() ? 1 : 0)
        .as("%s is one of these", path)
        .isEqualTo(1 - (path.isMoved() ? 1 : 0) - (path == BlockPath.STAGED ? 1 : 0));
  }
}
