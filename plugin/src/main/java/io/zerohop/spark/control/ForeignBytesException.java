package io.zerohop.spark.control;

import java.io.IOException;

/** What came over a connection is not of this protocol, or not yet; the connection is closed. */
final class ForeignBytesException extends IOException {
  private static final long serialVersionUID = 1L;

  ForeignBytesException(final String message) {
    super(message);
  }
}
