package io.zerohop.spark.blocktransfer.sent;

import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdException;
import java.nio.ByteBuffer;
import net.jpountz.lz4.LZ4Exception;
import net.jpountz.lz4.LZ4Factory;
import org.jspecify.annotations.Nullable;

/**
 * A codec of messages. Buffers are direct. A codec whose native library cannot be loaded fails like
 * one whose output does not fit. Thread safe.
 */
enum MessageCodec {
  PLAIN {
    @Override
    int compress(final ByteBuffer from, final ByteBuffer to) {
      throw new UnsupportedOperationException();
    }

    @Override
    int expand(final ByteBuffer from, final ByteBuffer to) {
      throw new UnsupportedOperationException();
    }
  },
  LZ4 {
    @Override
    int compress(final ByteBuffer from, final ByteBuffer to) {
      try {
        return LZ4Factory.fastestInstance()
            .fastCompressor()
            .compress(from, from.position(), from.remaining(), to, to.position(), to.remaining());
      } catch (final LZ4Exception | LinkageError e) {
        return NO_ROOM;
      }
    }

    @Override
    int expand(final ByteBuffer from, final ByteBuffer to) {
      try {
        return LZ4Factory.fastestInstance()
            .safeDecompressor()
            .decompress(from, from.position(), from.remaining(), to, to.position(), to.remaining());
      } catch (final LZ4Exception | LinkageError e) {
        return NO_ROOM;
      }
    }
  },
  /** At level 1. */
  ZSTD {
    @Override
    int compress(final ByteBuffer from, final ByteBuffer to) {
      return checked(
          () ->
              Zstd.compressDirectByteBuffer(
                  to, to.position(), to.remaining(), from, from.position(), from.remaining(), 1));
    }

    @Override
    int expand(final ByteBuffer from, final ByteBuffer to) {
      return checked(
          () ->
              Zstd.decompressDirectByteBuffer(
                  to, to.position(), to.remaining(), from, from.position(), from.remaining()));
    }
  };

  /**
   * The result if the output does not fit, the input is not of this codec, or it cannot be loaded.
   */
  static final int NO_ROOM = -1;

  private static final MessageCodec[] ALL = values();

  /** Returns the codec of a number that came over the network; null if there is none. */
  static @Nullable MessageCodec of(final int ordinal) {
    return ordinal > 0 && ordinal < ALL.length ? ALL[ordinal] : null;
  }

  /**
   * Compresses the rest of a buffer into the rest of another; positions stay.
   *
   * @return how many bytes it takes there, or {@link #NO_ROOM}
   */
  abstract int compress(ByteBuffer from, ByteBuffer to);

  /**
   * The other way. Writes nowhere else, whatever the bytes are.
   *
   * @return how many bytes it takes there, or {@link #NO_ROOM}
   */
  abstract int expand(ByteBuffer from, ByteBuffer to);

  /** A call of zstd's, which says by an exception or by its result that it failed. */
  private interface ZstdCall {
    long run();
  }

  private static int checked(final ZstdCall call) {
    try {
      final long bytes = call.run();
      return Zstd.isError(bytes) ? NO_ROOM : Math.toIntExact(bytes);
    } catch (final ZstdException | LinkageError e) {
      return NO_ROOM;
    }
  }
}
