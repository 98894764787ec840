package io.zerohop.shuffle.transport.remote.carrier;

import java.util.function.Consumer;

/**
 * What carries bytes from this executor to others, and from others to it. Questions and answers
 * about them go by a {@link io.zerohop.shuffle.transport.ControlLink} beside it. Thread safe;
 * whoever made it owns and ends it.
 */
public interface Carrier {

  /** By which others reach this executor; opaque to all but the same carrier. Not to be changed. */
  byte[] address();

  /**
   * A way to another executor. May wait for a limited time, though not for an answer: an executor
   * that is not there shows in what is sent to it.
   *
   * @param address what {@link #address} gave there
   * @param onFailure called once, by any thread, when the other is found to be lost; must not wait
   * @return owned by the caller
   * @throws CarrierException if the address is none, or cannot be reached from here
   */
  Road connect(byte[] address, Consumer<String> onFailure);

  /** How its messages are cut. */
  default MessageSizes sizes() {
    return MessageSizes.DEFAULT;
  }

  /** What takes arriving bytes from now on; set before anybody knows the address. */
  void receiver(Arrivals arrivals);
}
