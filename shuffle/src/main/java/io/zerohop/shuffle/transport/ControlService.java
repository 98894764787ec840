package io.zerohop.shuffle.transport;

import java.nio.ByteBuffer;
import java.util.function.Consumer;

/** Answers the requests of a {@link ControlChannel}. Thread safe. */
public interface ControlService {

  /**
   * A question has come. Called on a thread of the channel, which must not be blocked.
   *
   * @param link names the link that it came by; never used again for another
   * @param question valid during this call only
   * @param answer to be called once, by any thread, now or later; what is given must not be changed
   *     afterwards
   * @throws RuntimeException to refuse; the message travels to the one who asked
   */
  void asked(long link, ByteBuffer question, Consumer<ByteBuffer> answer);

  /** The link is gone, and nothing comes by it any more. Called once for each link that asked. */
  void disconnected(long link);
}
