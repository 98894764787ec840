package io.zerohop.spark.proof;

/** Something of the proof could not be done; the message says what, and what would help. */
final class ProofException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  ProofException(final String message) {
    super(message);
  }

  ProofException(final String message, final Throwable cause) {
    super(message, cause);
  }
}
