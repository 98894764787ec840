package io.zerohop.spark.spillfiles;

import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import org.apache.spark.network.buffer.ManagedBuffer;

/** Bytes for an encrypted connection: a method that buffers have from Spark 4.0 on. */
final class SslBytes {
  private static final MethodHandle CONVERT = find();

  private SslBytes() {}

  private static MethodHandle find() {
    try {
      return MethodHandles.publicLookup()
          .findVirtual(
              ManagedBuffer.class, "convertToNettyForSsl", MethodType.methodType(Object.class));
    } catch (final NoSuchMethodException | IllegalAccessException e) {
      return null; // Before 4.0, where nobody asks.
    }
  }

  static Object of(final ManagedBuffer buffer) throws IOException {
    if (CONVERT == null) {
      return buffer.convertToNetty();
    }
    try {
      return CONVERT.invoke(buffer);
    } catch (final IOException | RuntimeException | Error e) {
      throw e;
    } catch (final Throwable e) {
      throw new IOException(e);
    }
  }
}
