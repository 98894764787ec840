package io.zerohop.device.cuda;

import java.util.Arrays;
import java.util.function.DoubleSupplier;

/** Repeated measurements of one thing: one to warm up, then some that count. */
record Samples(double median, double least, double most) {
  static final int RUNS = 5;

  static Samples of(final DoubleSupplier measurement) {
    final double[] all = new double[1 + RUNS];
    Arrays.setAll(all, i -> measurement.getAsDouble());
    final double[] values = Arrays.copyOfRange(all, 1, all.length);
    Arrays.sort(values);
    return new Samples(values[RUNS / 2], values[0], values[RUNS - 1]);
  }
}
