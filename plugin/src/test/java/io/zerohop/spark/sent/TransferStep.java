package io.zerohop.spark.sent;

import io.zerohop.device.posix.Deadline;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;

/** A moment of the first transfer between two executors, as a network sees it. */
enum TransferStep {
  /** The owner was asked who it is, and has said nothing yet. */
  MET,
  /** The owner has said who it is. */
  KNOWN,
  /** The owner has said where the blocks lie, and holds them. */
  OPENED,
  /** The third of the messages begins. */
  SENDING,
  /** All messages have come, and the owner's words that they are all have not. */
  ARRIVED;

  private static final int HELLO = 0;
  private static final int OPEN = 1;
  private static final int MIDDLE = 3;

  /** Both waits hold a connection up, which Spark ends after a second in which nothing passes. */
  private static final Duration HELD_UP = Duration.ofMillis(300);

  /** What is done then. */
  interface Action {
    void run() throws IOException;
  }

  /**
   * Has something done once it is so; at a moment of a connection nothing more passes by it
   * meanwhile.
   */
  void await(final SentNodes.Member owner, final SentNodes.Member reader, final Action action) {
    switch (this) {
      case MET -> owner.proxy().hear(behind(UploadId.QUESTION, HELLO, action));
      case KNOWN -> reader.proxy().hear(behind(UploadId.ANSWER, HELLO, action));
      case OPENED -> reader.proxy().hear(behind(UploadId.ANSWER, OPEN, action));
      case SENDING -> reader.proxy().hear(inMessages(action));
      case ARRIVED -> reader.proxy().hear(behindMessages(owner, action));
      default -> throw new AssertionError(this);
    }
  }

  private static PortProxy.Ear behind(final int type, final int number, final Action action) {
    return new PortProxy.Ear() {
      @Override
      public void ended(final UploadId id) throws IOException {
        if (id.kind() == UploadId.WORD && id.type() == type && id.place() == number) {
          action.run();
        }
      }
    };
  }

  private static PortProxy.Ear inMessages(final Action action) {
    final AtomicInteger begun = new AtomicInteger();
    return new PortProxy.Ear() {
      @Override
      public void begins(final UploadId id) throws IOException {
        if (id.kind() == UploadId.MESSAGE && begun.incrementAndGet() == MIDDLE) {
          action.run();
        }
      }
    };
  }

  private static PortProxy.Ear behindMessages(final SentNodes.Member owner, final Action action) {
    final AtomicInteger begun = new AtomicInteger();
    return new PortProxy.Ear() {
      @Override
      public void begins(final UploadId id) throws IOException {
        if (id.kind() == UploadId.MESSAGE) {
          begun.incrementAndGet();
        } else if (id.type() == UploadId.ANSWER && id.place() > OPEN && haveCome()) {
          action.run();
        }
      }

      /**
       * Returns false at an answer that belongs to no transfer, and at one with another transfer
       * behind it on the connection. The last answer is neither.
       */
      private boolean haveCome() {
        return isSoon(() -> begun.get() > 0)
            && isSoon(() -> owner.stats().receiveBuffers().sendingBytes() == 0);
      }

      private boolean isSoon(final BooleanSupplier condition) {
        return Deadline.in(HELD_UP).await(condition, millis -> Thread.sleep(1));
      }
    };
  }
}
