package io.zerohop.spark.rapids.read;

import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.HostMemoryBuffer;
import ai.rapids.cudf.Schema;
import ai.rapids.cudf.Table;
import com.nvidia.spark.rapids.jni.kudo.KudoGpuSerializer;
import io.zerohop.device.Crc32c;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.spark.rapids.api.ExchangeMetrics;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.rapids.format.KudoLayout.KudoBlock;
import io.zerohop.spark.rapids.format.PackedColumns;
import io.zerohop.spark.rapids.format.TableAssembly;
import io.zerohop.spark.rapids.format.TableHeader;
import io.zerohop.spark.rapids.format.TableHeader.PackedTable;
import io.zerohop.spark.rapids.read.TableGather.HostStaging;
import java.io.IOException;
import java.io.PushbackInputStream;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.function.BiFunction;
import java.util.function.IntToLongFunction;
import java.util.stream.LongStream;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.Platform;
import org.jspecify.annotations.Nullable;

/**
 * Loads the tables of fetched blocks into RAPIDS' memory: all requested ones by one launch, and
 * Kudo blocks by RAPIDS' serializer after that. Blocks that carry checksums are compared before
 * anything reads what their bytes say. Launches are in the order of the task's own stream, so
 * tables may be used there at once; blocks must stay readable until {@link #finish}. For one task's
 * thread; owns what it has not handed out.
 */
public final class TableLoader implements AutoCloseable {
  private static final int ALIGNMENT = 256;

  private final RapidsClasses rapids;
  private final TableGather gather;
  private final ExchangeMetrics metrics;
  private final HostStaging staging;
  private final DataType[] types;
  private final Runnable check;
  private final Deque<Waiting> waiting = new ArrayDeque<>();
  private long waitingBytes;

  /** What RAPIDS takes in GPU memory for each Kudo block beside its bytes. */
  private final long kudoBlockRoom;

  /** Makes a table of Kudo blocks and of where they begin; absent before the first one. */
  private @Nullable BiFunction<DeviceMemoryBuffer, DeviceMemoryBuffer, Table> serializer;

  /**
   * A waiting block, and the address of its bytes within the gather's reach.
   *
   * @param tables one behind the other; none if it is a Kudo block
   * @param room what it takes in GPU memory until it is part of a table
   * @param of whose extent it is, if that carries a checksum that was not compared
   */
  private record Waiting(
      List<PackedTable> tables,
      long address,
      long bytes,
      long room,
      @Nullable FetchedBlock of,
      int extent) {
    boolean isKudo() {
      return tables.isEmpty();
    }

    /** Tables, or the one Kudo block. */
    int parts() {
      return isKudo() ? 1 : tables.size();
    }

    /** Bytes of one of them. */
    long length(final int part) {
      return isKudo() ? bytes : tables.get(part).bytes();
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
    this.types = types;
    this.check = check;
    this.kudoBlockRoom = KudoBlock.readerBytes(types);
  }

  /**
   * Notes the tables of a block.
   *
   * @return rows of tables without columns
   * @throws IOException if the block is damaged
   */
  public long add(final FetchedBlock block) throws IOException {
    gather.await(block);
    return block.extentCount() == 0 ? addStream(block) : addExtents(block);
  }

  private long addExtents(final FetchedBlock block) throws IOException {
    long rows = 0;
    int next = 0;
    while (next < block.extentCount()) {
      final int i = next++;
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
      if (bytes == 0) {
        rows += addAll(tables, 0, null, 0);
        continue;
      }
      final int payload = next++;
      if (payload == block.extentCount() || block.extentLength(payload) != bytes) {
        throw new IOException("a block's tables are not as long as their header says");
      }
      final long at = block.extentAddress(payload);
      final long reached = gather.reaches(block, payload) ? at : staging.copy(at, bytes);
      rows += addAll(tables, reached, block, payload);
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
    add(List.of(), address, bytes, bytes + kudoBlockRoom, block, extent);
    metrics.read(bytes);
  }

  private void add(
      final List<PackedTable> tables,
      final long address,
      final long bytes,
      final long room,
      final @Nullable FetchedBlock block,
      final int extent) {
    final FetchedBlock summed = block != null && block.extentChecked(extent) ? block : null;
    waiting.add(new Waiting(tables, address, bytes, room, summed, extent));
    waitingBytes += room;
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
        rows += addAll(tables, bytes == 0 ? 0 : staging.read(in, bytes), null, 0);
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
      if (PackedColumns.isDamaged(table)) {
        throw new IOException("a table's columns do not lie within it");
      }
    }
  }

  /** Of an extent of a block, or of no block if they come from a stream, or have no bytes. */
  private long addAll(
      final List<PackedTable> tables,
      final long address,
      final @Nullable FetchedBlock block,
      final int extent)
      throws IOException {
    checkFit(tables);
    final List<PackedTable> withColumns = new ArrayList<>(tables.size());
    long rows = 0;
    long bytes = 0;
    long room = 0;
    for (final PackedTable table : tables) {
      if (table.metadata().length == 0) {
        rows += table.rows();
      } else {
        withColumns.add(table);
        bytes += table.bytes();
        room += aligned(table.bytes());
        metrics.read(table.bytes());
      }
    }
    if (block != null && block.extentChecked(extent)) {
      if (!withColumns.isEmpty()) {
        add(withColumns, address, bytes, room, block, extent);
      }
      return rows;
    }
    long at = address;
    for (final PackedTable table : withColumns) {
      add(List.of(table), at, table.bytes(), aligned(table.bytes()), null, 0);
      at += table.bytes();
    }
    return rows;
  }

  private static long aligned(final long bytes) {
    return (bytes + ALIGNMENT - 1) & -ALIGNMENT;
  }

  private static ByteBuffer hostBytes(final long address, final int length) {
    final byte[] bytes = new byte[length];
    Platform.copyMemory(null, address, bytes, Platform.BYTE_ARRAY_OFFSET, length);
    return ByteBuffer.wrap(bytes);
  }

  /** Whether no table waits to be gathered. */
  public boolean isEmpty() {
    return waiting.isEmpty();
  }

  /** Bytes that the tables that wait will take. */
  public long bytes() {
    return waitingBytes;
  }

  /** Bytes of host memory that hold some of them. */
  public long stagedBytes() {
    return staging.bytes();
  }

  /**
   * Gathers what waits, in its order, up to so many bytes but at least one, and of one form; into
   * one table where that can be done.
   */
  public void gather(final long mostBytes, final List<Table> to) {
    final boolean isKudo = waiting.getFirst().isKudo();
    final List<Waiting> now = new ArrayList<>();
    long bytes = 0;
    for (final Waiting next : waiting) {
      final boolean full = bytes + next.room() > mostBytes;
      if (!now.isEmpty() && full || next.isKudo() != isKudo) {
        break;
      }
      now.add(next);
      bytes += next.room();
    }
    if (isKudo) {
      to.add(assembleKudo(now));
    } else {
      // A block that is larger than a batch is not to be in memory twice.
      gatherPacked(now, bytes, now.size() > 1 || bytes <= mostBytes, to);
    }
    for (int i = 0; i < now.size(); i++) {
      waitingBytes -= waiting.remove().room();
    }
  }

  private void gatherPacked(
      final List<Waiting> now, final long bytes, final boolean mayAssemble, final List<Table> to) {
    final List<PackedTable> tables = now.stream().flatMap(next -> next.tables().stream()).toList();
    final TableAssembly plan =
        tables.size() == 1 || !mayAssemble || !gather.canAssemble()
            ? null
            : TableAssembly.plan(tables);
    if (plan != null) {
      to.add(assemble(plan, now));
    } else {
      copy(now, Math.max(ALIGNMENT, bytes), to);
    }
  }

  /**
   * Brings the tables into the columns of one: right there, or once they have arrived as they are,
   * if their checksums are to be compared. To read them twice where they lie would cost more than a
   * copy within the GPU.
   */
  private Table assemble(final TableAssembly plan, final List<Waiting> blocks) {
    if (blocks.stream().allMatch(next -> next.of() == null)) {
      return assemble(plan, addresses(blocks, i -> blocks.get(i).address()));
    }
    final long[] starts = starts(blocks);
    try (DeviceMemoryBuffer arrived =
        rapids.withRetry(() -> DeviceMemoryBuffer.allocate(starts[blocks.size()]))) {
      gather.copy(pieces(blocks, starts), arrived);
      final long[] tables = addresses(blocks, i -> arrived.getAddress() + starts[i]);
      compare(blocks, tables);
      return assemble(plan, tables);
    }
  }

  private Table assemble(final TableAssembly plan, final long[] tables) {
    try (DeviceMemoryBuffer memory =
        rapids.withRetry(() -> DeviceMemoryBuffer.allocate(plan.bytes()))) {
      gather.assemble(plan, tables, memory.getAddress());
      return Table.fromPackedTable(plan.metadata(), memory);
    }
  }

  /** Brings the tables as they are. */
  private void copy(final List<Waiting> blocks, final long total, final List<Table> to) {
    try (DeviceMemoryBuffer memory = rapids.withRetry(() -> DeviceMemoryBuffer.allocate(total))) {
      final long[] from = addresses(blocks, i -> blocks.get(i).address());
      final long[] arrived = new long[from.length];
      final List<TableGather.Piece> pieces = new ArrayList<>();
      long offset = 0;
      int table = 0;
      for (final Waiting block : blocks) {
        for (final PackedTable next : block.tables()) {
          if (next.bytes() > 0) {
            pieces.add(new TableGather.Piece(from[table], offset, next.bytes()));
          }
          arrived[table++] = memory.getAddress() + offset;
          offset += aligned(next.bytes());
        }
      }
      gather.copy(pieces, memory);
      if (blocks.stream().anyMatch(next -> next.of() != null)) {
        compare(blocks, arrived);
      }
      table = 0;
      for (final Waiting block : blocks) {
        for (final PackedTable next : block.tables()) {
          to.add(table(next, memory, arrived[table++] - memory.getAddress()));
        }
      }
    }
  }

  /**
   * Puts blocks of RAPIDS' GPU serializer together, in their order, once their checksums are right.
   * They are gathered into one buffer, with a list of where each begins, and RAPIDS makes one table
   * of all of them. Blocks must stay readable until the gather has finished.
   *
   * @throws BlockFetchException if a block is not what was written
   */
  private Table assembleKudo(final List<Waiting> of) {
    final BiFunction<DeviceMemoryBuffer, DeviceMemoryBuffer, Table> join = serializer();
    final long[] starts = starts(of);
    final long listBytes = (long) Long.BYTES * starts.length;
    try (DeviceMemoryBuffer blocks =
            rapids.withRetry(() -> DeviceMemoryBuffer.allocate(starts[of.size()]));
        DeviceMemoryBuffer list = rapids.withRetry(() -> DeviceMemoryBuffer.allocate(listBytes))) {
      put(starts, list); // First, since it waits for the thread's stream.
      gather.copy(pieces(of, starts), blocks);
      final long[] arrived = new long[of.size()];
      Arrays.setAll(arrived, i -> blocks.getAddress() + starts[i]);
      compare(of, arrived);
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

  /**
   * Waits for blocks and compares those that carry checksums, since their bytes say how they are
   * read.
   *
   * @param addresses where each of their tables is now, or where each Kudo block is
   * @throws BlockFetchException if a block is not what was written
   */
  private void compare(final List<Waiting> blocks, final long[] addresses) {
    int[] sums = null;
    if (blocks.stream().anyMatch(next -> next.of() != null)) {
      sums = gather.checksums(addresses, lengths(blocks, addresses.length));
    }
    gather.finish();
    check.run();
    int part = 0;
    for (final Waiting block : blocks) {
      int sum = 0;
      for (int i = 0; sums != null && i < block.parts(); i++) {
        sum = Crc32c.join(sum, sums[part++], (int) block.length(i));
      }
      if (sums != null && block.of() != null) {
        block.of().verify(block.extent(), sum);
      }
    }
  }

  private static long[] lengths(final List<Waiting> blocks, final int parts) {
    final long[] lengths = new long[parts];
    int part = 0;
    for (final Waiting block : blocks) {
      for (int i = 0; i < block.parts(); i++) {
        lengths[part++] = block.length(i);
      }
    }
    return lengths;
  }

  /** Where each block begins if they lie one behind the other, and where the last one ends. */
  private static long[] starts(final List<Waiting> blocks) {
    final long[] starts = new long[blocks.size() + 1];
    for (int i = 0; i < blocks.size(); i++) {
      starts[i + 1] = starts[i] + blocks.get(i).bytes();
    }
    return starts;
  }

  private static List<TableGather.Piece> pieces(final List<Waiting> blocks, final long[] starts) {
    final List<TableGather.Piece> pieces = new ArrayList<>(blocks.size());
    for (int i = 0; i < blocks.size(); i++) {
      final Waiting block = blocks.get(i);
      if (block.bytes() > 0) {
        pieces.add(new TableGather.Piece(block.address(), starts[i], block.bytes()));
      }
    }
    return pieces;
  }

  /**
   * The address of each table.
   *
   * @param ofBlock where the tables of each block begin
   */
  private static long[] addresses(final List<Waiting> blocks, final IntToLongFunction ofBlock) {
    final LongStream.Builder addresses = LongStream.builder();
    for (int i = 0; i < blocks.size(); i++) {
      long at = ofBlock.applyAsLong(i);
      for (final PackedTable table : blocks.get(i).tables()) {
        addresses.add(at);
        at += table.bytes();
      }
    }
    return addresses.build().toArray();
  }

  /** Waits until nothing of the blocks that were gathered is read any more. */
  public void finish() {
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
}
