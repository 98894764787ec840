package io.zerohop.shuffle.fetch;

import java.util.ArrayList;
import java.util.List;
import java.util.PriorityQueue;

/**
 * A network in virtual time: each executor has a link that carries so many bytes a second each way,
 * and shares it evenly between what comes or goes at the time. Nothing is random, so a model of it
 * gives the same figures anywhere. For one thread.
 */
final class PacedNetwork {
  private static final double NANOS = 1e9;

  private final double rate;
  private final int[] leaving;
  private final int[] coming;
  private final List<Flow> flows = new ArrayList<>();
  private final PriorityQueue<Event> events = new PriorityQueue<>();
  private double now;
  private long next;

  private record Event(double time, long number, Runnable step) implements Comparable<Event> {
    @Override
    public int compareTo(final Event other) {
      final int byTime = Double.compare(time, other.time);
      return byTime == 0 ? Long.compare(number, other.number) : byTime;
    }
  }

  private static final class Flow {
    private final int from;
    private final int to;
    private final Runnable end;
    private double left;
    private double rate;

    Flow(final int from, final int to, final double left, final Runnable end) {
      this.from = from;
      this.to = to;
      this.left = left;
      this.end = end;
    }
  }

  /**
   * @param rate bytes a second of each executor's link, each way
   */
  PacedNetwork(final int executors, final double rate) {
    this.rate = rate;
    leaving = new int[executors];
    coming = new int[executors];
  }

  /** Nanoseconds since the beginning. */
  double now() {
    return now;
  }

  /** Does something later. */
  void after(final double nanos, final Runnable step) {
    events.add(new Event(now + nanos, next++, step));
  }

  /** Moves bytes, and does something when they are there. */
  void move(final int from, final int to, final double bytes, final Runnable end) {
    flows.add(new Flow(from, to, bytes, end));
    leaving[from]++;
    coming[to]++;
  }

  /** Until nothing is left to do. */
  void run() {
    while (!events.isEmpty() || !flows.isEmpty()) {
      double end = events.isEmpty() ? Double.MAX_VALUE : events.peek().time();
      Flow first = null;
      for (final Flow flow : flows) {
        flow.rate = rate / Math.max(leaving[flow.from], coming[flow.to]) / NANOS;
        final double flowEnd = now + flow.left / flow.rate;
        if (flowEnd < end) {
          end = flowEnd;
          first = flow;
        }
      }
      for (final Flow flow : flows) {
        flow.left -= flow.rate * (end - now);
      }
      now = end;
      if (first == null) {
        events.poll().step().run();
      } else {
        flows.remove(first);
        leaving[first.from]--;
        coming[first.to]--;
        first.end.run();
      }
    }
  }
}
