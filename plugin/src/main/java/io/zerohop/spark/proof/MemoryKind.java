package io.zerohop.spark.proof;

import java.util.Locale;

/** The kinds of memory at both ends of a proof. */
enum MemoryKind {
  /** Shared memory of the host, as executors keep rows in. */
  HOST,
  /** GPU memory, as executors keep RAPIDS' batches in. */
  GPU;

  /** Its name in reports and questions. */
  String key() {
    return name().toLowerCase(Locale.ROOT);
  }

  static MemoryKind of(final String key) {
    return valueOf(key.toUpperCase(Locale.ROOT));
  }
}
