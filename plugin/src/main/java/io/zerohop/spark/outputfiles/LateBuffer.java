package io.zerohop.spark.outputfiles;

import io.zerohop.spark.compat.SparkLinks;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import org.apache.spark.network.buffer.ManagedBuffer;

/**
 * A buffer whose bytes are prepared only when Spark requests them, in the thread that sends them.
 */
public abstract class LateBuffer extends ManagedBuffer {

  /**
   * Blocks of a file, verified before their bytes are sent. Each is verified alone, so a damaged
   * one fails alone, under its own name.
   *
   * @param check is made once, at the first request
   */
  public static LateBuffer ofFile(final ManagedBuffer stored, final Check check) {
    return new VerifiedFileBuffer(stored, check);
  }

  /** Fails if the bytes are not what was written. */
  @FunctionalInterface
  public interface Check {
    void verify() throws IOException;
  }

  /** Prepares the bytes, at the first call, and returns the buffer that has them. Thread safe. */
  protected abstract ManagedBuffer bytes() throws IOException;

  @Override
  public final ByteBuffer nioByteBuffer() throws IOException {
    return bytes().nioByteBuffer();
  }

  @Override
  public final InputStream createInputStream() throws IOException {
    return bytes().createInputStream();
  }

  @Override
  public final Object convertToNetty() throws IOException {
    return bytes().convertToNetty();
  }

  /** Spark has it from 4.0 on. */
  @Override
  public final Object convertToNettyForSsl() throws IOException {
    return SparkLinks.toSslBytes(bytes());
  }

  /** A buffer of {@link #ofFile}. Thread safe. */
  private static final class VerifiedFileBuffer extends LateBuffer {
    private final ManagedBuffer stored;
    private final Check check;
    private boolean verified;

    VerifiedFileBuffer(final ManagedBuffer stored, final Check check) {
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
}
