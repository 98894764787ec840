package io.zerohop.spark.task;

import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.fetch.BlockFetchException;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.storage.BlockManagerId;

/** Maps a failure's category to Spark's reaction; the only place that does. */
public final class FailureOutcome {
  private FailureOutcome() {}

  /**
   * Throws what Spark should see of a failure; never returns.
   *
   * <ul>
   *   <li>FETCH_FAILED: Spark's FetchFailedException with the exact location object of the map
   *       status, so that Spark runs that map task again
   *   <li>FATAL: an error that ends the executor
   *   <li>RETRY and FALLBACK: as it is; the task fails and Spark tries it again
   * </ul>
   */
  public static RuntimeException raise(final ZerohopException failure) {
    if (failure instanceof BlockFetchException fetch) {
      final Block block = fetch.block();
      throw FailureOutcome.<RuntimeException>unchecked(
          new FetchFailedException(
              (BlockManagerId) fetch.source().address(),
              block.shuffleId(),
              block.mapId(),
              block.mapIndex(),
              block.partition(),
              failure.getMessage(),
              failure));
    }
    if (failure.category() == ZerohopException.Category.FATAL) {
      throw new InternalError("Zerohop cannot go on in this executor: " + failure, failure);
    }
    throw failure;
  }

  /** Throws a checked exception where Scala, which has none, declares nothing. */
  @SuppressWarnings("unchecked")
  private static <E extends Throwable> RuntimeException unchecked(final Throwable failure)
      throws E {
    throw (E) failure;
  }
}
