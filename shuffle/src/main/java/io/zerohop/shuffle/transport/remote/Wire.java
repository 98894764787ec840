package io.zerohop.shuffle.transport.remote;

import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.Tier;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.Comparator;
import java.util.List;
import java.util.function.IntConsumer;
import java.util.stream.IntStream;
import org.agrona.collections.IntArrayList;
import org.agrona.collections.LongArrayList;

/**
 * The questions that readers ask owners over a {@link
 * io.zerohop.shuffle.transport.ControlChannel.ControlLink}, and the answer about blocks,
 * big-endian: one byte that names the question, and what it needs. Texts and keys are four bytes of
 * length and the bytes. Both ends are of one application and so of one version; the version is
 * checked even so, since a rolling change of jars would else be read wrongly.
 *
 * <pre>
 *  HELLO  version, where to send to, would it         -> version, incarnation, and what the
 *         get GPU memory?                                carrier has to say besides
 *  PING                                               -> nothing
 *  OPEN   shuffle, n, n x (map id, partition)         -> lease, extents
 *  SEND   lease, transfer                             -> bytes that will be sent; the lease ends
 *                                                        when they were
 *  CLOSE  lease                                       -> whether it was still held
 * </pre>
 *
 * <p>Numbers from {@link #FIRST_OF_CARRIERS} on are the carriers' own. Extents are {@link
 * RemoteExtents}.
 */
public final class Wire {
  public static final int VERSION = 6;
  public static final byte HELLO = 1;
  public static final byte OPEN = 2;
  public static final byte SEND = 4;
  public static final byte CLOSE = 5;
  public static final byte PING = 7;
  public static final byte FIRST_OF_CARRIERS = 8;

  /** What an answer begins with. */
  public static final byte GRANTED = 0;

  /** What it begins with if the rest is a sentence that says why not. */
  public static final byte REFUSED = 1;

  public static final java.nio.charset.Charset TEXT = java.nio.charset.StandardCharsets.UTF_8;

  private static final int MAX_BYTES = 1 << 16;

  private Wire() {}

  /** An answer that grants what was asked for, with room for so many bytes. */
  public static ByteBuffer granted(final int bytes) {
    return ByteBuffer.allocate(1 + bytes).put(GRANTED);
  }

  /** An answer that says why not. */
  public static ByteBuffer refusal(final Throwable why) {
    final byte[] words = String.valueOf(why.getMessage()).getBytes(TEXT);
    return ByteBuffer.allocate(1 + words.length).put(REFUSED).put(words).flip();
  }

  public static void put(final ByteBuffer to, final byte[] bytes) {
    to.putInt(bytes.length).put(bytes);
  }

  /** Reads what {@link #put} wrote. */
  public static byte[] bytes(final ByteBuffer from) {
    final int length = from.getInt();
    if (length < 0 || length > MAX_BYTES) {
      throw new BufferUnderflowException();
    }
    final byte[] bytes = new byte[length];
    from.get(bytes);
    return bytes;
  }

  /** The requests of {@link Wire} in the reader's encoding, each ready to be sent. */
  public static final class Questions {
    private static final int BLOCK_BYTES = Long.BYTES + Integer.BYTES;

    private Questions() {}

    /**
     * Introduces the reader.
     *
     * @param address where bytes are sent to it; empty if none are
     * @param gpu whether it would get GPU memory
     */
    public static ByteBuffer hello(final byte[] address, final boolean gpu) {
      final ByteBuffer question = begin(Wire.HELLO, 2 * Integer.BYTES + address.length + 1);
      question.putInt(Wire.VERSION);
      Wire.put(question, address);
      return question.put((byte) (gpu ? 1 : 0)).flip();
    }

    /** Asks for a sign of life. */
    public static ByteBuffer ping() {
      return begin(Wire.PING, 0).flip();
    }

    /**
     * Asks for a lease on blocks, and where they lie.
     *
     * @param blocks of one shuffle, at least one
     */
    public static ByteBuffer open(final List<Block> blocks) {
      final ByteBuffer question = begin(Wire.OPEN, 2 * Integer.BYTES + BLOCK_BYTES * blocks.size());
      question.putInt(blocks.get(0).shuffleId()).putInt(blocks.size());
      for (final Block block : blocks) {
        question.putLong(block.mapId()).putInt(block.partition());
      }
      return question.flip();
    }

    /** Returns the request to send blocks. */
    public static ByteBuffer send(final long lease, final long transfer) {
      return begin(Wire.SEND, 2 * Long.BYTES).putLong(lease).putLong(transfer).flip();
    }

    /** Ends a lease, and asks whether it was still held. */
    public static ByteBuffer close(final long lease) {
      return begin(Wire.CLOSE, Long.BYTES).putLong(lease).flip();
    }

    private static ByteBuffer begin(final byte question, final int bytes) {
      return ByteBuffer.allocate(1 + bytes).put(question);
    }
  }

  /**
   * The places of one request's blocks at their owner: a run of extents for each block, none if the
   * owner does not hold it. Grows while it is made, does not change afterwards.
   *
   * <p>As bytes, big-endian: number of blocks, then for each the index behind its last extent, then
   * the number of extents and for each
   *
   * <pre>
   *  0                8          12         16      17          21
   *  | segment id     | offset   | length   | flags | CRC32C    |
   * </pre>
   */
  public static final class RemoteExtents {
    private static final int EXTENT_BYTES = 21;
    private static final byte CHECKED = 1;

    /** Of each block, the index behind its last extent. */
    private final IntArrayList ends = new IntArrayList();

    private final LongArrayList segments = new LongArrayList();
    private final IntArrayList offsets = new IntArrayList();
    private final IntArrayList lengths = new IntArrayList();
    private final IntArrayList flags = new IntArrayList();
    private final IntArrayList checksums = new IntArrayList();

    /** Adds an extent of the block that is not ended yet. */
    public void add(
        final long segment,
        final long offset,
        final int length,
        final boolean isChecked,
        final int checksum) {
      offsets.addInt(Math.toIntExact(offset));
      segments.addLong(segment);
      lengths.addInt(length);
      flags.addInt(isChecked ? CHECKED : 0);
      checksums.addInt(checksum);
    }

    /** The extents added since the last call, if any, are one block. */
    public void endBlock() {
      ends.addInt(size());
    }

    public int blocks() {
      return ends.size();
    }

    /** Index of a block's first extent. */
    public int begin(final int block) {
      return block == 0 ? 0 : ends.getInt(block - 1);
    }

    /** Index behind a block's last extent; that of its first if the owner does not hold it. */
    public int end(final int block) {
      return ends.getInt(block);
    }

    /** Extents of all blocks. */
    public int size() {
      return segments.size();
    }

    public long segment(final int extent) {
      return segments.getLong(extent);
    }

    /** Returns whether an extent lies in the owner's GPU memory. */
    public boolean isOnGpu(final int extent) {
      return SegmentIds.tier(segment(extent)) == Tier.DEVICE;
    }

    public int offset(final int extent) {
      return offsets.getInt(extent);
    }

    public int length(final int extent) {
      return lengths.getInt(extent);
    }

    public boolean isChecked(final int extent) {
      return flags.getInt(extent) == CHECKED;
    }

    public int checksum(final int extent) {
      return checksums.getInt(extent);
    }

    /** Bytes of {@link #write}. */
    public int encodedBytes() {
      return 8 + 4 * blocks() + EXTENT_BYTES * size();
    }

    public void write(final ByteBuffer to) {
      to.putInt(blocks());
      ends.forEachInt((final int end) -> to.putInt(end));
      to.putInt(size());
      for (int i = 0; i < size(); i++) {
        to.putLong(segment(i)).putInt(offset(i)).putInt(length(i));
        to.put((byte) flags.getInt(i)).putInt(checksum(i));
      }
    }

    /**
     * Reads what {@link #write} wrote.
     *
     * @throws java.nio.BufferUnderflowException if it is cut off
     * @throws IllegalArgumentException if it makes no sense
     */
    public static RemoteExtents read(final ByteBuffer from) {
      final RemoteExtents extents = new RemoteExtents();
      int end = 0;
      for (int left = count(from, 4); left > 0; left--) {
        final int next = from.getInt();
        check(next >= end, "blocks are out of order");
        extents.ends.addInt(next);
        end = next;
      }
      final int extentsThere = count(from, EXTENT_BYTES);
      for (int i = 0; i < extentsThere; i++) {
        final long segment = from.getLong();
        final int offset = from.getInt();
        final int length = from.getInt();
        final boolean isChecked = from.get() == CHECKED;
        check(offset >= 0 && length > 0, "an extent is not within a segment");
        extents.add(segment, offset, length, isChecked, from.getInt());
      }
      check(extents.size() == end, "extents are missing");
      return extents;
    }

    private static int count(final ByteBuffer from, final int bytesEach) {
      final int count = from.getInt();
      check(count >= 0 && (long) count * bytesEach <= from.remaining(), "it is truncated");
      return count;
    }

    private static void check(final boolean right, final String otherwise) {
      if (!right) {
        throw new IllegalArgumentException("a response about blocks is invalid: " + otherwise);
      }
    }

    /**
     * The layout of one request's extents in one piece of the reader's memory. Neighbours at the
     * owner form one run and move together. Reader and owner reckon it out of the same extents and
     * come to the same result, so it does not travel.
     *
     * <p>A run begins at the same place within 256 bytes as at the owner, which keeps the alignment
     * that codecs gave their blocks; small gaps between neighbours move with them.
     */
    public static final class ReceiveLayout {
      /** Codecs align blocks to this much at most. */
      private static final int ALIGNMENT = 256;

      /** Neighbours are joined up to this; what moves is cut to it, too, so that progress shows. */
      public static final int RUN_BYTES = 4 << 20;

      private final RemoteExtents extents;

      /** The extents that it is about. */
      private final int[] members;

      /** Of each extent of the request; those that it is not about have none. */
      private final int[] places;

      /** Positions among the members. */
      private final int[] firstOfRun;

      private final int runs;
      private final long bytes;

      /** The extents that it covers. */
      public enum Part {
        ALL,
        /** Those that lie in the owner's host memory. */
        HOST,
        /** Those that lie in the owner's GPU memory. */
        GPU;

        private boolean has(final RemoteExtents extents, final int extent) {
          return this == ALL || extents.isOnGpu(extent) == (this == GPU);
        }
      }

      public ReceiveLayout(final RemoteExtents extents, final Part part) {
        this.extents = extents;
        members = members(extents, part);
        places = new int[extents.size()];
        firstOfRun = new int[members.length + 1];
        long end = 0;
        int run = -1;
        for (int i = 0; i < members.length; i++) {
          final int extent = members[i];
          final long gap = i == 0 ? -1 : gap(members[i - 1], extent);
          final boolean joins =
              gap >= 0
                  && gap < ALIGNMENT
                  && end + gap + extents.length(extent) - places[first(run)] <= RUN_BYTES;
          if (!joins) {
            run++;
            firstOfRun[run] = i;
          }
          final long at =
              joins
                  ? end + gap
                  : (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT
                      + extents.offset(extent) % ALIGNMENT;
          places[extent] = Math.toIntExact(at);
          end = at + extents.length(extent);
        }
        runs = run + 1;
        firstOfRun[runs] = members.length;
        bytes = end;
      }

      /**
       * In the order in which they lie there: blocks of several batches take turns in a request.
       */
      private static int[] members(final RemoteExtents extents, final Part part) {
        final int[] asked =
            IntStream.range(0, extents.size())
                .filter(extent -> part.has(extents, extent))
                .toArray();
        if (inOrder(extents, asked)) {
          return asked; // As those of one batch are.
        }
        return IntStream.of(asked)
            .boxed()
            .sorted(
                Comparator.<Integer>comparingLong(extents::segment)
                    .thenComparingInt(extents::offset))
            .mapToInt(Integer::intValue)
            .toArray();
      }

      private static boolean inOrder(final RemoteExtents extents, final int[] members) {
        for (int i = 1; i < members.length; i++) {
          final int before = members[i - 1];
          final int segments = Long.compare(extents.segment(members[i]), extents.segment(before));
          if (segments < 0
              || (segments == 0 && extents.offset(members[i]) < extents.offset(before))) {
            return false;
          }
        }
        return true;
      }

      /** Bytes between an extent and the one before it; negative if they are no neighbours. */
      private long gap(final int before, final int extent) {
        if (extents.segment(extent) != extents.segment(before)) {
          return -1;
        }
        return (long) extents.offset(extent) - extents.offset(before) - extents.length(before);
      }

      /** Returns the bytes of all extents. */
      public long bytes() {
        return bytes;
      }

      /** Returns the place of an extent. */
      public int place(final int extent) {
        return places[extent];
      }

      /** Runs that move. */
      public int runs() {
        return runs;
      }

      /** The first extent of a run, whose place is the run's. */
      public int first(final int run) {
        return members[firstOfRun[run]];
      }

      /** Extents of a run. */
      public int runLength(final int run) {
        return firstOfRun[run + 1] - firstOfRun[run];
      }

      /** Bytes of a run, gaps included. */
      public int runBytes(final int run) {
        final int last = members[firstOfRun[run + 1] - 1];
        return places[last] + extents.length(last) - places[first(run)];
      }

      /** Gives the extents of some runs, in order. */
      public void forEach(final int firstRun, final int endRun, final IntConsumer extent) {
        for (int i = firstOfRun[firstRun]; i < firstOfRun[endRun]; i++) {
          extent.accept(members[i]);
        }
      }
    }
  }
}
