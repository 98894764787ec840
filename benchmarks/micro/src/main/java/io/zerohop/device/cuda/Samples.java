package io.zerohop.device.cuda;

import java.util.Arrays;
import java.util.function.DoubleSupplier;

/** Repeated measurements of one thing: one to warm up, then some that count. */
record Samples(double median, double least, double most) {
  static final int RUNS = 5;

  static Samples of(final DoubleSupplier measurement) {
    measurement.getAsDouble();
    final double[] values = new double[RUNS];
    Arrays.setAll(values, i -> measurement.getAsDouble());
    Arrays.sort(values);
    return new Samples(values[RUNS / 2], values[0], values[RUNS - 1]);
  }
}
