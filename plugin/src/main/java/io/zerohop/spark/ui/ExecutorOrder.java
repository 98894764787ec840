package io.zerohop.spark.ui;

import java.util.Comparator;

/** Executors by their numbers, and behind them those whose ids are none, by their names. */
final class ExecutorOrder implements Comparator<String> {
  static final ExecutorOrder INSTANCE = new ExecutorOrder();

  private ExecutorOrder() {}

  @Override
  public int compare(final String one, final String other) {
    final int byNumber = Long.compare(number(one), number(other));
    return byNumber != 0 ? byNumber : one.compareTo(other);
  }

  private static long number(final String id) {
    return id.matches("\\d{1,18}") ? Long.parseLong(id) : Long.MAX_VALUE;
  }
}
