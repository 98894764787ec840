package io.zerohop.shuffle.transport.remote;

import io.zerohop.device.posix.ElasticThreads;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.shuffle.log.ShuffleCode;
import java.util.List;
import java.util.concurrent.Executor;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The threads that serve other executors: for own transfers, for responses, and for slow work, so
 * that none waits for another. They come with work. Where the system has none left, the
 * housekeeping's does it: the carrier's own, which hand most of the work over, must not. Thread
 * safe.
 */
public final class RemoteThreads implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(RemoteThreads.class);

  /** Answers are short. */
  private static final int ANSWERING = 2;

  /** Each may wait for a GPU, or compute checksums and compress at some GB/s. */
  private static final int MAX_WORKING = 4;

  private final ElasticThreads transfers;
  private final ElasticThreads answers;
  private final ElasticThreads sends;

  /**
   * @param housekeeping must outlive them
   */
  public RemoteThreads(final Housekeeping housekeeping) {
    final int working =
        Math.max(2, Math.min(MAX_WORKING, Runtime.getRuntime().availableProcessors() / 4));
    transfers = new ElasticThreads("transfers", working, housekeeping);
    answers = new ElasticThreads("answers", ANSWERING, housekeeping);
    sends = new ElasticThreads("sends", working, housekeeping);
  }

  public Executor transfers() {
    return transfers;
  }

  public Executor answers() {
    return answers;
  }

  public Executor sends() {
    return sends;
  }

  /** Lets them do what was handed over, for a limited time, and ends them. Idempotent. */
  @Override
  public void close() {
    final List<ElasticThreads> all = List.of(transfers, answers, sends);
    all.forEach(ElasticThreads::shutdown);
    for (final ElasticThreads threads : all) {
      if (!threads.end()) {
        ShuffleCode.SERVING_NOT_ENDED
            .says("threads that serve other nodes did not end at shutdown")
            .at(String.valueOf(threads))
            .warn(LOG);
      }
    }
  }
}
