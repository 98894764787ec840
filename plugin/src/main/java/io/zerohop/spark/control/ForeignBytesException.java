package io.zerohop.spark.control;

import java.io.IOException;

/**
 * Thrown if bytes from a connection are not of this protocol, or come too early; the connection is
 * closed.
 */
final class ForeignBytesException extends IOException {
  private static final long serialVersionUID = 1L;

  ForeignBytesException(final String message) {
    super(message);
  }
}
