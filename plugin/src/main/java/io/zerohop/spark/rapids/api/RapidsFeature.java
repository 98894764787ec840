package io.zerohop.spark.rapids.api;

/**
 * A feature that needs parts of RAPIDS which a version may lack: {@link RapidsMember} lists the
 * parts, and {@link RapidsProbe} finds them.
 */
public enum RapidsFeature {
  /** Batches in GPU memory go through Zerohop; nothing works without it. */
  SHUFFLE("shuffles in GPU memory"),

  /** RAPIDS' shuffle environment is made of its configuration: from 25.02 on. */
  ENV_OF_CONF("a shuffle environment made of the configuration"),

  /** It is made with a place for spilled buffers, too: 24.12. */
  ENV_WITH_DISK("a shuffle environment made with a disk block manager"),

  /** Whole batches are split by RAPIDS' serializer on the GPU. */
  KUDO("splitting whole batches by RAPIDS' serializer"),

  /** RAPIDS asks our pool for memory when the GPU has none left: from 25.02 on. */
  SPILL_STORE("giving GPU memory back when RAPIDS runs out of it");

  private final String words;

  RapidsFeature(final String words) {
    this.words = words;
  }

  /** What it is for, within a sentence. */
  public String words() {
    return words;
  }
}
