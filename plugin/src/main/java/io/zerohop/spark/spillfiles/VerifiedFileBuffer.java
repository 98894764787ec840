package io.zerohop.spark.spillfiles;

import java.io.IOException;
import org.apache.spark.network.buffer.ManagedBuffer;

/**
 * Blocks of a file, verified when Spark requests their bytes, in the thread that sends them. Each
 * is verified alone, so a damaged one fails alone, under its own name. Thread safe.
 */
public final class VerifiedFileBuffer extends LateBuffer {
  private final ManagedBuffer stored;
  private final Check check;
  private boolean verified;

  /** Fails if the bytes are not what was written. */
  @FunctionalInterface
  public interface Check {
    void verify() throws IOException;
  }

  public VerifiedFileBuffer(final ManagedBuffer stored, final Check check) {
    this.stored = stored;
    this.check = check;
  }

  @Override
  protected synchronized ManagedBuffer bytes() throws IOException {
    if (!verified) {
      check.verify();
      verified = true;
    }
    return stored;
  }

  @Override
  public long size() {
    return stored.size();
  }

  @Override
  public ManagedBuffer retain() {
    stored.retain();
    return this;
  }

  @Override
  public ManagedBuffer release() {
    stored.release();
    return this;
  }

  @Override
  public String toString() {
    return stored.toString();
  }
}
