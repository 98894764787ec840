package io.zerohop.spark.rdmaproof;

import io.zerohop.spark.rdmaproof.Proof.MemoryKind;
import io.zerohop.spark.rdmaproof.Proof.ProofException;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.List;

/** One of the two hosts of a proof. Used by one thread. */
interface Side {
  /** Its name in reports. */
  String name();

  HostFacts facts();

  /**
   * Starts a worker on it, for the caller to close.
   *
   * @throws ProofException if it does not start
   */
  Worker start(MemoryKind kind);

  /**
   * A {@link GetWorker} on this host or on the other one. Owned by the caller that started it; used
   * by one thread.
   */
  interface Worker extends AutoCloseable {

    /**
     * Sends a request and waits for the response.
     *
     * @param limit for the answer
     * @return the words of a good answer
     * @throws ProofException with the reason of a bad one, or if there is none in time, or the
     *     process has ended
     */
    List<String> ask(Duration limit, String... words);

    /** Stops it (SIGSTOP), and returns when it is stopped. */
    void stop();

    /** Continues it (SIGCONT). */
    void resume();

    boolean isStopped();

    /** Kills it (SIGKILL), stopped or not. */
    void kill();

    /** Kills it, and waits for its end. Idempotent. */
    @Override
    void close();
  }

  /** The connection between both hosts has ended, and nothing more can be tried. */
  final class LostException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    LostException(final String message, final Throwable cause) {
      super(message, cause);
    }
  }

  /**
   * This host.
   *
   * @param host address of the interface that UCX may listen on
   * @param life after which a worker is killed
   * @param log gets what workers and their libraries print
   */
  record Own(String name, String host, int gpu, Duration life, PrintWriter log) implements Side {
    @Override
    public HostFacts facts() {
      return HostFacts.read(gpu);
    }

    @Override
    public ChildProcess start(final MemoryKind kind) {
      return ChildProcess.start(kind, this);
    }
  }
}
