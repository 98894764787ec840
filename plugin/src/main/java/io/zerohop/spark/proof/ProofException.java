package io.zerohop.spark.proof;

/** Thrown if a step of the proof could not be done; the message has the cause and the remedy. */
final class ProofException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  ProofException(final String message) {
    super(message);
  }

  ProofException(final String message, final Throwable cause) {
    super(message, cause);
  }
}
