package io.zerohop.spark.proof;

import java.util.Locale;

/** Where the bytes are that a proof reads, and where they come to. */
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
