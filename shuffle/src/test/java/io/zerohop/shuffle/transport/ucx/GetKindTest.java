package io.zerohop.shuffle.transport.ucx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.shuffle.transport.ucx.TestReads.GetKind;
import io.zerohop.shuffle.transport.ucx.memory.GetQuestions.TestTarget;
import io.zerohop.shuffle.transport.ucx.memory.TestRange;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GetKindTest {
  private final FakeOwner owner = new FakeOwner();

  @AfterEach
  void close() {
    owner.close();
  }

  private GetKind kind(final TestTarget target) throws Exception {
    final TestRange.Destination to = owner.destination();
    try {
      return GetKind.of(owner.reads(), target, to);
    } finally {
      to.release();
    }
  }

  @Test
  void getsOfWhichTheOwnerNoticesNothingAreOneSided() throws Exception {
    assertThat(kind(owner.target)).isEqualTo(GetKind.ONE_SIDED);
  }

  @Test
  void getsThatTheOwnerAnswersAreEmulated() throws Exception {
    owner.perGet = 1;
    assertThat(kind(owner.target)).isEqualTo(GetKind.EMULATED);
  }

  @Test
  void whatOthersDoMeanwhileDoesNotMakeThemEmulated() throws Exception {
    owner.perQuestion = 9;
    assertThat(kind(owner.target)).isEqualTo(GetKind.ONE_SIDED);
  }

  @Test
  void anOwnerThatWasBusyAtFirstIsTriedAgain() throws Exception {
    owner.perQuestion = 1000;
    owner.busyQuestions = 2;
    assertThat(kind(owner.target)).isEqualTo(GetKind.ONE_SIDED);
  }

  @Test
  void ofAnOwnerThatIsBusyAllTheTimeNothingIsKnown() throws Exception {
    owner.perQuestion = 1000;
    assertThat(kind(owner.target)).isEqualTo(GetKind.UNKNOWN);
  }

  @Test
  void withoutMemoryToGetNothingIsTried() throws Exception {
    assertThat(kind(TestTarget.NONE)).isEqualTo(GetKind.NONE);
    assertThat(owner.gets).isZero();
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 64, 900, 4 << 10, 16 << 20})
  void aGetThatBringsAnotherByteFails(final long size) {
    owner.wrongFrom = size;
    assertThatThrownBy(() -> kind(owner.target))
        .hasMessageContaining("a get of " + size + " bytes")
        .hasMessageContaining("byte " + (size - 1));
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 64, 900, 4 << 10})
  void aGetThatWritesMoreThanWasAskedForFails(final long size) {
    owner.tooLongFrom = size;
    assertThatThrownBy(() -> kind(owner.target)).hasMessageContaining("byte " + size);
  }
}
