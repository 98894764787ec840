package io.zerohop.shuffle.transport.ucx.jucx;

import io.zerohop.shuffle.transport.ucx.UcxCompletion;
import org.openucx.jucx.UcxCallback;
import org.openucx.jucx.ucp.UcpRequest;

/**
 * One request under way. UCX may call back and throw for the same one; it is completed once. Only
 * the worker's thread comes here.
 */
final class JucxRequest extends UcxCallback {
  private final JucxWorker worker;
  private final UcxCompletion completion;
  private boolean completed;

  /** For a request that the worker was told of, see {@link JucxWorker#begun}. */
  JucxRequest(final JucxWorker worker, final UcxCompletion completion) {
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
      completion.done(failure);
    }
  }
}
