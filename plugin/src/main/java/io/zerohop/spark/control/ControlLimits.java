package io.zerohop.spark.control;

import java.time.Duration;

/**
 * Limits of one connection.
 *
 * @param strangerFrame most bytes of a frame from one that has proved nothing; a refused proof is a
 *     stack trace, the rest is about a hundred bytes
 * @param questionBytes most bytes of a question
 * @param answerBytes most bytes of an answer
 * @param unproven maximum number of connections that came in and have proved nothing
 * @param unprovenOfOne the same for one address
 * @param close longest wait for connections to end when the channel closes
 */
record ControlLimits(
    int strangerFrame,
    int questionBytes,
    int answerBytes,
    int unproven,
    int unprovenOfOne,
    Duration close) {
  static final ControlLimits DEFAULT =
      new ControlLimits(32 << 10, 16 << 20, 64 << 20, 256, 64, Duration.ofSeconds(5));

  /** Type, request id and length of the body: what a frame has before it. */
  static final int FRAME_HEADER = 1 + Long.BYTES + Integer.BYTES;
}
