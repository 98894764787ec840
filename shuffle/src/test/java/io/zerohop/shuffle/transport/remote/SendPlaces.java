package io.zerohop.shuffle.transport.remote;

import io.zerohop.shuffle.transport.remote.Sends.SendQueue;
import java.util.ArrayDeque;
import java.util.Deque;

/** The places of an owner that sends, for a model: given out in one order or another. */
public interface SendPlaces {

  /** Has it begun when it is its turn. */
  void submit(Object reader, Runnable begin);

  /** What was begun for a reader has ended. */
  void ended(Object reader);

  /** As the product does. */
  static SendPlaces inTurns() {
    final SendQueue queue = new SendQueue(Runnable::run, Long.MAX_VALUE);
    return new SendPlaces() {
      @Override
      public void submit(final Object reader, final Runnable begin) {
        queue.submit(reader, 1, begin);
      }

      @Override
      public void ended(final Object reader) {
        queue.ended(reader, 1);
      }
    };
  }

  /** As many places, first come, first served. */
  static SendPlaces firstComeFirstServed() {
    return new SendPlaces() {
      private final Deque<Runnable> waiting = new ArrayDeque<>();
      private int underWay;

      @Override
      public void submit(final Object reader, final Runnable begin) {
        if (underWay == SendQueue.AT_ONCE) {
          waiting.add(begin);
        } else {
          underWay++;
          begin.run();
        }
      }

      @Override
      public void ended(final Object reader) {
        final Runnable next = waiting.poll();
        if (next == null) {
          underWay--;
        } else {
          next.run();
        }
      }
    };
  }
}
