package io.zerohop.spark.proof;

/** The connection between both hosts has ended, and nothing more can be tried. */
final class LostException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  LostException(final String message, final Throwable cause) {
    super(message, cause);
  }
}
