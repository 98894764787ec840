package io.zerohop.shuffle.transport.remote.owner;

import java.nio.ByteBuffer;
import java.util.function.Consumer;

/**
 * An owner's responses to requests that only one carrier has. Thread safe.
 *
 * @param <R> what is kept of a reader
 */
public interface CarrierAnswers<R extends ServedReader> {

  /**
   * A reader that has just come.
   *
   * @param left takes over leases that it does not end itself
   */
  R reader(Consumer<ServedLease> left);

  /**
   * Returns the end of the response to a reader that introduces itself.
   *
   * @param address where bytes are sent to it; empty if none are
   * @param gpu whether the reader would get GPU memory
   */
  byte[] hello(R reader, byte[] address, boolean gpu);

  /**
   * Answers a question, now or later. Called on a thread that may take some time, but not wait.
   *
   * @param kind names the question
   * @param question what follows, to be kept by nobody
   * @param answer to be called once
   * @throws RuntimeException to refuse; the words travel to the reader
   */
  void answer(byte kind, ByteBuffer question, R reader, Consumer<ByteBuffer> answer);
}
