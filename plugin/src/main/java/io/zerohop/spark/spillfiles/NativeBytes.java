package io.zerohop.spark.spillfiles;

import java.io.IOException;
import java.io.OutputStream;
import org.apache.spark.unsafe.Platform;

/** Writes memory outside the heap to a stream, through one small buffer. Not thread safe. */
public final class NativeBytes {
  private final byte[] buffer = new byte[64 << 10];

  /** Writes {@code length} bytes that begin at {@code address}. */
  public void copyTo(final long address, final long length, final OutputStream out)
      throws IOException {
    long done = 0;
    while (done < length) {
      final int part = (int) Math.min(buffer.length, length - done);
      Platform.copyMemory(null, address + done, buffer, Platform.BYTE_ARRAY_OFFSET, part);
      out.write(buffer, 0, part);
      done += part;
    }
  }
}
