package io.zerohop.spark.proof;

/**
 * One line of a proof. Immutable.
 *
 * @param check what was checked, by its name
 * @param memory whose bytes were read; null where that does not matter
 * @param owner name of the host that owned them; empty where that does not matter
 * @param what what was done, in words
 * @param bytes of each get; 0 where that does not matter
 * @param value what was counted or measured; NaN if nothing was
 * @param unit of the value
 * @param why why it failed or was skipped, and what would help; may say more where it passed
 */
record Finding(
    Check check,
    MemoryKind memory,
    String owner,
    String what,
    long bytes,
    double value,
    String unit,
    Result result,
    String why) {

  /** What others have said may end up on a terminal: it has no control characters. */
  Finding {
    what = Words.plain(what);
    why = Words.plain(why);
  }

  /** How it went. */
  enum Result {
    PASSED,
    FAILED,
    SKIPPED
  }

  /** What is checked. */
  enum Check {
    /** The hosts are two. */
    HOSTS,
    /** The hosts do not lose each other. Found only if they do. */
    CONNECTION,
    /** Both have a hardware adapter. */
    ADAPTER,
    /** Both have a GPU and a driver for it. */
    DRIVER,
    /** Adapters reach GPU memory, by nvidia-peermem or dma-buf. */
    GPUDIRECT,
    /** UCX starts as in executors. */
    UCX,
    /** A segment is registered. */
    REGISTER,
    /** Gets bring the right bytes and no others. */
    CONTENTS,
    /** Gets end while the owner is stopped. */
    ONE_SIDED,
    /** Gets of owners that are killed end. */
    KILLED,
    /** How long gets take, and how much they bring. */
    RATE,
    /** A job of Spark's. */
    JOB;

    String key() {
      return name().toLowerCase(java.util.Locale.ROOT).replace('_', '-');
    }
  }

  /** Of a check of a host or of both. */
  static Finding of(final Check check, final String what, final Result result, final String why) {
    return new Finding(check, null, "", what, 0, Double.NaN, "", result, why);
  }
}
