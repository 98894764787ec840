package io.zerohop.shuffle.transport.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.Fetch;
import org.junit.jupiter.api.Test;

/** The same where the owner may end and the reader lives on. */
public abstract class RemotePathContract extends PathContract {

  /** From now on nobody serves the owner's blocks, as when its process has ended. */
  protected void endService() {
    served.leave("owner");
  }

  @Test
  void anOwnerThatHasEndedFailsTheFetch() {
    final BlockSource source = write(2);
    end();
    assertFails(source);
  }

  @Test
  void anOwnerThatWasReadAndHasEndedFailsTheFetch() {
    final BlockSource source = write(2);
    try (Fetch fetcher = fetch(source)) {
      assertThat(fetcher.next()).isTrue();
    }
    end();
    assertFails(source);
  }

  private void end() {
    owner.unregisterShuffle(SHUFFLE);
    endService();
    // A message that was begun for a reader that has closed ends by itself.
    TestNodes.eventually("nothing is sent", () -> owner.stats().receiveBuffers().slabs() == 0);
    owner.close();
  }

  private void assertFails(final BlockSource source) {
    try (Fetch fetcher = fetch(source)) {
      assertThatThrownBy(fetcher::next)
          .isInstanceOfSatisfying(
              BlockFetchException.class,
              e -> {
                assertThat(e.category()).isEqualTo(ZerohopException.Category.FETCH_FAILED);
                assertThat(e.source().executorId()).isEqualTo("owner");
              });
    }
  }
}
