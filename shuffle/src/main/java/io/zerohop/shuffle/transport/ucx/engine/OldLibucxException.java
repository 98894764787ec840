package io.zerohop.shuffle.transport.ucx.engine;

/** The libucx that was loaded is older than what is used; the message is all there is to say. */
public final class OldLibucxException extends UcxException {
  private static final long serialVersionUID = 1L;

  public OldLibucxException(final String message) {
    super(message, null);
  }
}
