package io.zerohop.spark.rapids.read;

import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.HostMemoryBuffer;
import ai.rapids.cudf.Schema;
import ai.rapids.cudf.Table;
import com.nvidia.spark.rapids.jni.kudo.KudoGpuSerializer;
import io.zerohop.device.BlockChecksums;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.spark.rapids.api.ExchangeMetrics;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.rapids.format.KudoBlock;
import io.zerohop.spark.rapids.format.PackedColumns;
import io.zerohop.spark.rapids.format.TableAssembly;
import io.zerohop.spark.rapids.format.TableHeader;
import io.zerohop.spark.rapids.format.TableHeader.PackedTable;
import java.io.IOException;
import java.io.PushbackInputStream;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.function.BiFunction;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.jspecify.annotations.Nullable;

/**
 * Loads the tables of fetched blocks into RAPIDS' memory: all requested ones by one allocation and
 * one launch, and Kudo blocks by RAPIDS' serializer after that. The launch is in the order of the
 * task's own stream, so tables may be used there at once; blocks must stay readable until {@link
 * #finish}. For one task's thread; owns what it has not handed out.
 */
public final class TableLoader implements AutoCloseable {
  private static final int ALIGNMENT = 256;

  private final RapidsClasses rapids;
  private final TableGather gather;
  private final ExchangeMetrics metrics;
  private final HostStaging staging;
  private final KudoAssembly kudo;
  private final Deque<Waiting> waiting = new ArrayDeque<>();
  private long waitingBytes;

  /**
   * A waiting piece, and the address of its bytes within the gather's reach.
   *
   * @param table absent if it is a Kudo block
   * @param room what it takes in GPU memory until it is part of a table
   * @param of whose extent it is, if that carries a checksum that was not compared
   */
  private record Waiting(
      @Nullable PackedTable table,
      long address,
      long bytes,
      long room,
      @Nullable FetchedBlock of,
      int extent) {
    boolean isKudo() {
      return table == null;
    }

    /** Of one that is not {@linkplain #isKudo Kudo's}. */
    PackedTable packed() {
      return Objects.requireNonNull(table, "a Kudo block is no packed table");
    }
  }

  /**
   * @param gather owned from now on
   * @param types of the columns
   * @param check throws if blocks may have been freed before they were gathered
   * @param metrics told how many bytes the tables have
   */
  public TableLoader(
      final RapidsClasses rapids,
      final TableGather gather,
      final DataType[] types,
      final Runnable check,
      final ExchangeMetrics metrics) {
    this.rapids = rapids;
    this.gather = gather;
    this.metrics = metrics;
    this.staging = new HostStaging(gather::hostBuffer);
    this.kudo = new KudoAssembly(rapids, gather, types, check);
  }

  /**
   * Notes the tables of a block.
   *
   * @return rows of tables without columns
   * @throws IOException if the block is damaged
   */
  long add(final FetchedBlock block) throws IOException {
    gather.await(block);
    return block.extentCount() == 0 ? addStream(block) : addExtents(block);
  }

  private long addExtents(final FetchedBlock block) throws IOException {
    long rows = 0;
    for (int i = 0; i < block.extentCount(); i++) {
      if (gather.isOnDevice(block, i)) {
        addKudo(block.extentAddress(i), block.extentLength(i), block, i);
        continue; // What is packed has a header on the host.
      }
      if (KudoBlock.begins(firstBytes(block, i))) {
        addKudo(block, i);
        continue;
      }
      block.verify(i);
      final List<PackedTable> tables =
          TableHeader.read(hostBytes(block.extentAddress(i), block.extentLength(i)));
      final long bytes = TableHeader.payload(tables);
      long address = 0;
      if (bytes > 0) {
        i++;
        if (i == block.extentCount() || block.extentLength(i) != bytes) {
          throw new IOException("a block's tables are not as long as their header says");
        }
        block.verify(i); // Nothing on the GPU, where such tables are not summed up.
        final long at = block.extentAddress(i);
        address = gather.reaches(block, i) ? at : staging.copy(at, bytes);
      }
      rows += addAll(tables, address);
    }
    return rows;
  }

  private static int firstBytes(final FetchedBlock block, final int extent) {
    return block.extentLength(extent) < Integer.BYTES
        ? 0
        : Integer.reverseBytes(Platform.getInt(null, block.extentAddress(extent)));
  }

  /** A Kudo block in host memory. */
  private void addKudo(final FetchedBlock block, final int extent) throws IOException {
    final long at = block.extentAddress(extent);
    final int bytes = block.extentLength(extent);
    final int most = Math.min(bytes, KudoBlock.FIXED_BYTES);
    if (KudoBlock.length(hostBytes(at, most)) != bytes) {
      throw new IOException("a Kudo block is not as long as its header says");
    }
    addKudo(gather.reaches(block, extent) ? at : staging.copy(at, bytes), bytes, block, extent);
  }

  /** Of an extent of a block, or of no block if it comes from a stream. */
  private void addKudo(
      final long address, final long bytes, final @Nullable FetchedBlock block, final int extent) {
    final FetchedBlock summed = block != null && block.extentChecked(extent) ? block : null;
    final Waiting next =
        new Waiting(null, address, bytes, bytes + kudo.bytesPerBlock(), summed, extent);
    waiting.add(next);
    waitingBytes += next.room();
    metrics.read(bytes);
  }

  private long addStream(final FetchedBlock block) throws IOException {
    long rows = 0;
    try (PushbackInputStream in = new PushbackInputStream(block.stream(), KudoBlock.FIXED_BYTES)) {
      byte[] first = first(in);
      if (first.length == 0) {
        throw new IOException("a block is empty, but its map status says that it has rows");
      }
      for (; first.length > 0; first = first(in)) {
        if (first.length >= Integer.BYTES && KudoBlock.begins(ByteBuffer.wrap(first).getInt())) {
          final long bytes = KudoBlock.length(ByteBuffer.wrap(first));
          addKudo(staging.read(in, bytes), bytes, null, 0);
          continue;
        }
        final List<PackedTable> tables =
            Objects.requireNonNull(TableHeader.read(in), "there is more in the stream");
        final long bytes = TableHeader.payload(tables);
        rows += addAll(tables, bytes == 0 ? 0 : staging.read(in, bytes));
      }
    }
    return rows;
  }

  /** What comes next in a stream, as much as tells what it is, and is still to be read. */
  private static byte[] first(final PushbackInputStream in) throws IOException {
    final byte[] first = in.readNBytes(KudoBlock.FIXED_BYTES);
    in.unread(first);
    return first;
  }

  /** A checksum says that a header is what its owner wrote, not that it makes sense. */
  private static void checkFit(final List<PackedTable> tables) throws IOException {
    for (final PackedTable table : tables) {
      final PackedColumns columns = PackedColumns.parse(table.metadata());
      if (columns != null && !columns.fits(table.bytes(), table.bounds())) {
        throw new IOException("a table's columns do not lie within it");
      }
    }
  }

  private long addAll(final List<PackedTable> tables, final long from) throws IOException {
    checkFit(tables);
    long rows = 0;
    long address = from;
    for (final PackedTable table : tables) {
      if (table.metadata().length == 0) {
        rows += table.rows();
      } else {
        final Waiting next =
            new Waiting(
                table,
                address,
                table.bytes(),
                (table.bytes() + ALIGNMENT - 1) & -ALIGNMENT,
                null,
                0);
        waiting.add(next);
        waitingBytes += next.room();
        address += table.bytes();
        metrics.read(table.bytes());
      }
    }
    return rows;
  }

  private static ByteBuffer hostBytes(final long address, final int length) {
    final byte[] bytes = new byte[length];
    Platform.copyMemory(null, address, bytes, Platform.BYTE_ARRAY_OFFSET, length);
    return ByteBuffer.wrap(bytes);
  }

  /** Whether no table waits to be gathered. */
  boolean isEmpty() {
    return waiting.isEmpty();
  }

  /** Bytes that the tables that wait will take. */
  long bytes() {
    return waitingBytes;
  }

  /** Bytes of host memory that hold some of them. */
  long stagedBytes() {
    return staging.bytes();
  }

  /**
   * Gathers what waits, in its order, up to so many bytes but at least one, and of one form; into
   * one table where that can be done.
   */
  void gather(final long mostBytes, final List<Table> to) {
    final boolean isKudo = waiting.getFirst().isKudo();
    final List<Waiting> now = new ArrayList<>();
    long bytes = 0;
    for (final Waiting next : waiting) {
      final boolean full =
          bytes + next.room() > mostBytes || now.size() == BlockChecksums.MAX_BLOCKS;
      if (!now.isEmpty() && full || next.isKudo() != isKudo) {
        break;
      }
      now.add(next);
      bytes += next.room();
    }
    if (isKudo) {
      to.add(kudo.assemble(now));
    } else {
      gatherPacked(now, bytes, to);
    }
    for (int i = 0; i < now.size(); i++) {
      waitingBytes -= waiting.remove().room();
    }
  }

  private void gatherPacked(final List<Waiting> now, final long bytes, final List<Table> to) {
    final TableAssembly plan =
        now.size() == 1 || !gather.canAssemble()
            ? null
            : TableAssembly.plan(now.stream().map(Waiting::packed).toList());
    if (plan != null) {
      to.add(assemble(plan, now));
    } else {
      copy(now, Math.max(ALIGNMENT, bytes), to);
    }
  }

  /** Brings the tables right into the columns of one. */
  private Table assemble(final TableAssembly plan, final List<Waiting> tables) {
    try (DeviceMemoryBuffer memory =
        rapids.withRetry(() -> DeviceMemoryBuffer.allocate(plan.bytes()))) {
      gather.assemble(
          plan, tables.stream().mapToLong(Waiting::address).toArray(), memory.getAddress());
      return Table.fromPackedTable(plan.metadata(), memory);
    }
  }

  /** Brings the tables as they are. */
  private void copy(final List<Waiting> tables, final long total, final List<Table> to) {
    try (DeviceMemoryBuffer memory = rapids.withRetry(() -> DeviceMemoryBuffer.allocate(total))) {
      final List<TableGather.Piece> pieces = new ArrayList<>();
      long at = 0;
      for (final Waiting next : tables) {
        if (next.bytes() > 0) {
          pieces.add(new TableGather.Piece(next.address(), at, next.bytes()));
        }
        at += next.room();
      }
      gather.copy(pieces, memory);
      long offset = 0;
      for (final Waiting next : tables) {
        to.add(table(next.packed(), memory, offset));
        offset += next.room();
      }
    }
  }

  /** Waits until nothing of the blocks that were gathered is read any more. */
  void finish() {
    gather.finish();
    if (waiting.isEmpty()) {
      staging.close();
    }
  }

  /** A table that holds a reference on its part of the memory. */
  private static Table table(
      final PackedTable packed, final DeviceMemoryBuffer memory, final long offset) {
    final ByteBuffer metadata = ByteBuffer.allocateDirect(packed.metadata().length);
    metadata.put(packed.metadata()).flip();
    try (DeviceMemoryBuffer part = memory.slice(offset, packed.bytes())) {
      return Table.fromPackedTable(metadata, part);
    }
  }

  @Override
  public void close() {
    waiting.clear();
    waitingBytes = 0;
    gather.close(); // Waits for what is under way, if finish did not.
    staging.close(); // Not if that does not end.
  }

  /**
   * Puts blocks of RAPIDS' GPU serializer together: they are gathered into one buffer, with a list
   * of where each begins, and RAPIDS makes one table of all of them. For one task's thread.
   */
  private static final class KudoAssembly {
    private final RapidsClasses rapids;
    private final TableGather gather;
    private final DataType[] types;
    private final Runnable check;
    private final long bytesPerBlock;

    /** Makes a table of blocks and of where they begin; absent before the first table. */
    private @Nullable BiFunction<DeviceMemoryBuffer, DeviceMemoryBuffer, Table> serializer;

    /**
     * @param types of the columns
     * @param check throws if an owner may have freed blocks before they were gathered; does not
     *     wait
     */
    KudoAssembly(
        final RapidsClasses rapids,
        final TableGather gather,
        final DataType[] types,
        final Runnable check) {
      this.rapids = rapids;
      this.gather = gather;
      this.types = types;
      this.check = check;
      this.bytesPerBlock = Long.BYTES + 256L * columns(types);
    }

    /**
     * What RAPIDS takes in GPU memory for each block while it puts blocks together, beside their
     * bytes: some 250 bytes a column, by its source.
     */
    long bytesPerBlock() {
      return bytesPerBlock;
    }

    /** With those that are nested in others. */
    private static int columns(final DataType... of) {
      int columns = of.length;
      for (final DataType type : of) {
        if (type instanceof ArrayType array) {
          columns += columns(array.elementType());
        } else if (type instanceof MapType map) {
          columns += 1 + columns(map.keyType(), map.valueType());
        } else if (type instanceof StructType struct) {
          for (final StructField field : struct.fields()) {
            columns += columns(field.dataType());
          }
        }
      }
      return columns;
    }

    /**
     * Makes one table of blocks, in their order, once their checksums are right. Blocks must stay
     * readable until the gather has finished.
     *
     * @throws BlockFetchException if a block is not what was written
     */
    Table assemble(final List<Waiting> of) {
      final BiFunction<DeviceMemoryBuffer, DeviceMemoryBuffer, Table> join = serializer();
      final long[] starts = new long[of.size() + 1];
      final List<TableGather.Piece> pieces = new ArrayList<>(of.size());
      for (int i = 0; i < of.size(); i++) {
        pieces.add(new TableGather.Piece(of.get(i).address(), starts[i], of.get(i).bytes()));
        starts[i + 1] = starts[i] + of.get(i).bytes();
      }
      final long listBytes = (long) Long.BYTES * starts.length;
      try (DeviceMemoryBuffer blocks =
              rapids.withRetry(() -> DeviceMemoryBuffer.allocate(starts[of.size()]));
          DeviceMemoryBuffer list =
              rapids.withRetry(() -> DeviceMemoryBuffer.allocate(listBytes))) {
        put(starts, list); // First, since it waits for the thread's stream.
        gather.copy(pieces, blocks);
        final boolean summed = of.stream().anyMatch(next -> next.of() != null);
        final int[] sums = summed ? gather.checksums(blocks, starts, list) : null;
        gather.finish(); // Blocks say how they are read: nothing may read others than were written.
        check.run();
        for (int i = 0; sums != null && i < sums.length; i++) {
          final FetchedBlock block = of.get(i).of();
          if (block != null) {
            block.verify(of.get(i).extent(), sums[i]);
          }
        }
        return rapids.withRetry(() -> join.apply(blocks, list));
      }
    }

    private BiFunction<DeviceMemoryBuffer, DeviceMemoryBuffer, Table> serializer() {
      BiFunction<DeviceMemoryBuffer, DeviceMemoryBuffer, Table> known = serializer;
      if (known == null) {
        known = serializer(rapids.schema(types));
        serializer = known;
      }
      return known;
    }

    /** Separate, so that no local variable links this class to cudf's type of columns. */
    private static BiFunction<DeviceMemoryBuffer, DeviceMemoryBuffer, Table> serializer(
        final Schema columns) {
      return (blocks, list) -> KudoGpuSerializer.assembleFromDeviceRaw(columns, blocks, list);
    }

    /** Brings numbers to the GPU. */
    private void put(final long[] numbers, final DeviceMemoryBuffer list) {
      final long bytes = list.getLength();
      try (HostMemoryBuffer host = rapids.withRetry(() -> HostMemoryBuffer.allocate(bytes))) {
        for (int i = 0; i < numbers.length; i++) {
          Platform.putLong(null, host.getAddress() + (long) Long.BYTES * i, numbers[i]);
        }
        list.copyFromHostBuffer(host, 0, bytes);
      }
    }
  }
}
