package io.zerohop.shuffle.transport.ucx.connect;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.transport.remote.memory.Slab;
import io.zerohop.shuffle.transport.ucx.wire.TestTarget;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class GetKindTest {
  private final FakeOwner owner = new FakeOwner();

  @AfterEach
  void close() {
    owner.close();
  }

  private GetKind kind(final TestTarget target) throws Exception {
    final Slab slab = owner.slab();
    try {
      return GetKind.of(owner.reads(), target, slab);
    } finally {
      slab.release();
    }
  }

  @Test
  void getsOfWhichTheOwnerNoticesNothingAreOneSided() throws Exception {
    assertThat(kind(FakeOwner.TARGET)).isEqualTo(GetKind.ONE_SIDED);
  }

  @Test
  void getsThatTheOwnerAnswersAreEmulated() throws Exception {
    owner.perGet = 1;
    assertThat(kind(FakeOwner.TARGET)).isEqualTo(GetKind.EMULATED);
  }

  @Test
  void whatOthersDoMeanwhileDoesNotMakeThemEmulated() throws Exception {
    owner.perQuestion = 9;
    assertThat(kind(FakeOwner.TARGET)).isEqualTo(GetKind.ONE_SIDED);
  }

  @Test
  void anOwnerThatWasBusyAtFirstIsTriedAgain() throws Exception {
    owner.perQuestion = 1000;
    owner.busyQuestions = 2;
    assertThat(kind(FakeOwner.TARGET)).isEqualTo(GetKind.ONE_SIDED);
  }

  @Test
  void ofAnOwnerThatIsBusyAllTheTimeNothingIsKnown() throws Exception {
    owner.perQuestion = 1000;
    assertThat(kind(FakeOwner.TARGET)).isEqualTo(GetKind.UNKNOWN);
  }

  @Test
  void withoutMemoryToGetNothingIsTried() throws Exception {
    assertThat(kind(TestTarget.NONE)).isEqualTo(GetKind.NONE);
    assertThat(owner.gets).isZero();
  }
}
