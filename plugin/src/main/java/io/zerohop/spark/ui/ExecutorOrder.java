package io.zerohop.spark.ui;

import java.util.Comparator;

/** The order of executors: by number, then those without a number by name. */
final class ExecutorOrder implements Comparator<String> {
  static final ExecutorOrder INSTANCE = new ExecutorOrder();

  private static final int MAX_DIGITS = 18;

  private ExecutorOrder() {}

  @Override
  public int compare(final String one, final String other) {
    final int byNumber = Long.compare(number(one), number(other));
    return byNumber != 0 ? byNumber : one.compareTo(other);
  }

  private static long number(final String id) {
    long number = 0;
    for (int i = 0; i < id.length(); i++) {
      final int digit = id.charAt(i) - '0';
      if (digit < 0 || digit > 9 || i == MAX_DIGITS) {
        return Long.MAX_VALUE;
      }
      number = 10 * number + digit;
    }
    return id.isEmpty() ? Long.MAX_VALUE : number;
  }
}
