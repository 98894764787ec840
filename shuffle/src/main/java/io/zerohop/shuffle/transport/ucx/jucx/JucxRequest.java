package io.zerohop.shuffle.transport.ucx.jucx;

import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.remote.carrier.Completion;
import org.openucx.jucx.UcxCallback;
import org.openucx.jucx.ucp.UcpRequest;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One request under way. UCX may call back and throw for the same one; it is completed once. Only
 * the worker's thread comes here.
 */
final class JucxRequest extends UcxCallback {
  private static final Logger LOG = LoggerFactory.getLogger(JucxRequest.class);

  private final JucxWorker worker;
  private final Completion completion;
  private boolean completed;

  /** For a request that the worker was told of, see {@link JucxWorker#begun}. */
  JucxRequest(final JucxWorker worker, final Completion completion) {
    this.worker = worker;
    this.completion = completion;
  }

  @Override
  public void onSuccess(final UcpRequest request) {
    complete(null);
  }

  @Override
  public void onError(final int status, final String message) {
    complete(message == null ? "UCX status " + status : message);
  }

  private void complete(final String failure) {
    if (!completed) {
      completed = true;
      worker.ended();
      try {
        completion.done(failure);
      } catch (final RuntimeException e) {
        ShuffleCode.REQUEST_END_FAILED.error(
            LOG, "the end of a request could not be handled", e); // It must not go into UCX.
      }
    }
  }
}
