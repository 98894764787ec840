package io.zerohop.shuffle.transport.ucx;

import static org.assertj.core.api.Assertions.assertThat;

import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.transport.remote.wire.Wire;
import io.zerohop.shuffle.transport.ucx.engine.UcxMode;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Blocks come by one-sided gets. */
class UcxGetTest extends UcxReads {
  UcxGetTest() {
    super(UcxMode.GET);
  }

  @Test
  void whatTheOwnerDidNotHoldToTheEndIsReadAgain() {
    final BlockSource source = write(4);
    final AtomicInteger opens = new AtomicInteger();
    channels.onQuestion = question -> opens.addAndGet(question.get() == Wire.OPEN ? 1 : 0);
    read(source);
    final int undisturbed = opens.getAndSet(0);
    channels.askedTwice = Wire.CLOSE; // The second time there is no such lease.
    assertThat(read(source)).containsOnlyKeys(Path.UCX);
    assertThat(channels.askedTwice).isZero();
    assertThat(opens.get()).isGreaterThan(undisturbed);
  }
}
