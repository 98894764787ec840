package io.zerohop.shuffle.route;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.route.PathChooser.OwnerLiveness;
import io.zerohop.shuffle.transport.FakeStaging;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.Test;

/** What is remembered of owners that cannot be asked. */
class OwnerLivenessTest {
  private final OwnerLiveness liveness = new OwnerLiveness(Clock.system());
  private final FakeStaging staging = new FakeStaging(1, 1);

  private static BlockSource owner(final long incarnation) {
    final String socket = String.format(Locale.ROOT, "1-%016x", incarnation);
    final Location location = new Location("0123abcd", "0123456789abcdef", incarnation, 0, socket);
    return new BlockSource("1", location, "address", List.of());
  }

  @Test
  void anAnswerIsBelievedForAWhile() {
    assertThat(liveness.answers(owner(1), staging)).isTrue();
    staging.desert();
    assertThat(liveness.answers(owner(1), staging)).isTrue();
    assertThat(liveness.answers(owner(2), staging)).isFalse();
  }

  @Test
  void silenceIsNot() {
    final FakeStaging deserted = new FakeStaging(1, 1);
    deserted.desert();
    assertThat(liveness.answers(owner(1), deserted)).isFalse();
    assertThat(liveness.answers(owner(1), staging)).isTrue();
  }
}
