package io.zerohop.shuffle.transport.remote.owner;

import java.nio.ByteBuffer;
import java.util.function.Consumer;

/** What owners answer that are reached by one carrier, beside what all do. Thread safe. */
public interface CarrierAnswers {
  /** Nothing. */
  CarrierAnswers NONE =
      new CarrierAnswers() {
        @Override
        public byte[] hello(final boolean gpu) {
          return new byte[0];
        }

        @Override
        public void answer(
            final byte kind,
            final ByteBuffer question,
            final ServedReader reader,
            final Consumer<ByteBuffer> answer) {
          throw new IllegalArgumentException("there is no such question");
        }
      };

  /**
   * What the answer to a reader that introduces itself ends with.
   *
   * @param gpu whether the reader would get GPU memory
   */
  byte[] hello(boolean gpu);

  /**
   * Answers a question, now or later. Called on a thread that may take some time, but not wait.
   *
   * @param kind names the question
   * @param question what follows, to be kept by nobody
   * @param answer to be called once
   * @throws RuntimeException to refuse; the words travel to the reader
   */
  void answer(byte kind, ByteBuffer question, ServedReader reader, Consumer<ByteBuffer> answer);
}
