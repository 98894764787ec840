package io.zerohop.spark.rapids.setup;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.ContiguousTable;
import ai.rapids.cudf.DType;
import ai.rapids.cudf.HostColumnVector.BasicType;
import ai.rapids.cudf.HostColumnVector.ListType;
import ai.rapids.cudf.HostMemoryBuffer;
import ai.rapids.cudf.Table;
import com.nvidia.spark.rapids.ShimLoader;
import io.zerohop.device.Message;
import io.zerohop.spark.conf.RapidsKeys;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.log.UnusableException;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.rapids.format.PackedColumns;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.unsafe.Platform;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes RAPIDS accept Zerohop as a manager that it may pass GPU batches to. It knows only its own,
 * by the name that is set when its shuffle environment is made; so the environment is made once
 * more while that name is set. To be called after RAPIDS' own plugin has started, in the driver,
 * which plans, and in executors, where single partitions are asked about again.
 */
public final class RapidsLatch {
  private static final Logger LOG = LoggerFactory.getLogger(RapidsLatch.class);
  private static final String MANAGER = "spark.shuffle.manager";

  /** So often an executor tries to look how cudf packs tables. */
  private static final int MAX_LOOKS = 3;

  private static int looks;

  /** Why it could not be closed in this process; absent if it could, or was not tried. */
  private static volatile @Nullable RuntimeException failure;

  private RapidsLatch() {}

  /**
   * Does so in an executor, where Spark only logs what plugins throw, and looks how cudf packs
   * tables there. Not for two threads at a time.
   *
   * @return whether all is done; else it is to be called again at another task
   */
  @SuppressWarnings("StaticAssignmentOfThrowable") // It is the cause of all that fail later.
  public static boolean closeInExecutor(final SparkEnv env) {
    try {
      if (looks == 0) {
        close(env);
      }
      looks++;
      return LayoutCheck.run(RapidsClasses.get(), looks == MAX_LOOKS) || looks == MAX_LOOKS;
    } catch (final RuntimeException | LinkageError e) {
      failure = e instanceof RuntimeException known ? known : new IllegalStateException(e);
      SparkCode.LATCH_FAILED
          .says("GPU shuffles will fail in this executor")
          .because(e)
          .error(LOG, e);
      return true;
    }
  }

  /**
   * Makes sure that an executor may shuffle RAPIDS' batches.
   *
   * @throws IllegalStateException if the latch could not be closed in it
   */
  public static void check() {
    final RuntimeException cause = failure;
    if (cause != null) {
      throw new UnusableException(Message.of(cause), cause);
    }
  }

  /**
   * Does so.
   *
   * @throws IllegalStateException if RAPIDS would not use GPU shuffles even so: its plans would not
   *     fit what is shuffled
   */
  public static void close(final SparkEnv env) {
    final SparkConf conf = env.conf();
    final boolean usesGpu;
    synchronized (RapidsLatch.class) {
      final String ours = conf.get(MANAGER);
      conf.set(MANAGER, ShimLoader.getRapidsShuffleManagerClass());
      try {
        usesGpu = RapidsClasses.get().initShuffleEnv(conf);
      } finally {
        conf.set(MANAGER, ours);
      }
    }
    if (!usesGpu) {
      throw new UnusableException(
          Message.of(
                  "RAPIDS does not use GPU shuffles although "
                      + RapidsMode.MODE
                      + "="
                      + RapidsKeys.get(conf, RapidsMode.MODE, ""))
              .remedy(
                  "see whether spark.rapids.sql.enabled or spark.rapids.shuffle.enabled is false;"
                      + " set spark.zerohop.rapids.enabled=false to go on without"));
    }
    LOG.info("Zerohop: RAPIDS passes its batches in GPU memory");
  }

  /**
   * Checks by a round trip whether cudf's packed tables have the layout of {@link PackedColumns}.
   * First, cudf packs a small table, and its values are read by that layout. Then cudf reads
   * metadata that Zerohop wrote, and the result is packed and read once more. For an executor whose
   * RAPIDS has started; it takes some kilobytes of GPU memory and a few calls of cudf's.
   */
  static final class LayoutCheck {
    private static final int INT32 = 3;
    private static final Integer[] INTS = {-7, null, 1 << 30};
    private static final String[] TEXTS = {"ab", null, "h\u00e9llo"};
    private static final List<List<Integer>> LISTS = List.of(List.of(1, 2), List.of(), List.of(3));

    /** The first rows are split off, so that nothing lies where the table began. */
    private static final int FIRST = 1;

    private final PackedColumns columns;
    private final long address;
    private final long length;
    private final int first;

    /** Of a packed table, which holds the rows from {@code first} on, in host memory. */
    private LayoutCheck(
        final PackedColumns columns, final long address, final long length, final int first) {
      this.columns = columns;
      this.address = address;
      this.length = length;
      this.first = first;
    }

    /**
     * Runs it, and has packed tables put together by our own knowledge of them if it passes, and by
     * cudf, which is slower, if it does not. That is said in one line.
     *
     * @param last whether it is not tried again should it fail, as where GPU memory is short; until
     *     then cudf does it, and nothing is said
     * @return whether it could be looked at
     */
    static boolean run(final RapidsClasses rapids, final boolean last) {
      final String wrong;
      try {
        wrong = rapids.withRetry(LayoutCheck::difference);
      } catch (final RuntimeException | OutOfMemoryError e) {
        PackedColumns.trust(false);
        LOG.debug("cudf's packed tables cannot be checked", e);
        if (last) {
          say("could not be asked how it packs tables", e);
        }
        return false;
      }
      PackedColumns.trust(wrong == null);
      if (wrong != null) {
        say("packs tables in an unknown way", wrong);
      }
      return true;
    }

    private static void say(final String what, final Object why) {
      SparkCode.LAYOUT_UNKNOWN
          .says("this cudf " + what + ", so cudf concatenates small tables, which is slower")
          .because(String.valueOf(why))
          .remedy("see docs/compatibility.md")
          .warn(LOG);
    }

    /** What is another way than we know; null if nothing is. */
    private static @Nullable String difference() {
      try (ColumnVector ints = ColumnVector.fromBoxedInts(INTS);
          ColumnVector texts = ColumnVector.fromStrings(TEXTS);
          ColumnVector lists = lists();
          Table table = new Table(ints, texts, lists)) {
        final ContiguousTable[] parts = table.contiguousSplit(FIRST);
        try {
          final byte[] written = written(parts[1], FIRST);
          return written == null ? "its metadata" : ofWritten(written, parts[1]);
        } finally {
          closeAll(parts);
        }
      }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static ColumnVector lists() {
      return ColumnVector.fromLists(
          new ListType(true, new BasicType(true, DType.INT32)), LISTS.toArray(new List[0]));
    }

    private static void closeAll(final ContiguousTable[] parts) {
      Arrays.stream(parts).forEach(ContiguousTable::close);
    }

    /** What cudf makes of metadata that we have written. */
    private static @Nullable String ofWritten(final byte[] metadata, final ContiguousTable of) {
      final ByteBuffer direct = ByteBuffer.allocateDirect(metadata.length);
      direct.put(metadata).flip();
      try (Table again = Table.fromPackedTable(direct, of.getBuffer())) {
        if (again.getRowCount() != INTS.length - FIRST) {
          return "it reads " + again.getRowCount() + " rows of our metadata";
        }
        final ContiguousTable[] parts = again.contiguousSplit(1);
        try {
          return written(parts[1], FIRST + 1) == null ? "what it reads of our metadata" : null;
        } finally {
          closeAll(parts);
        }
      }
    }

    /**
     * Our own metadata of a packed table; null if it does not hold the rows from a first one on.
     */
    private static byte @Nullable [] written(final ContiguousTable table, final int first) {
      final ByteBuffer direct = table.getMetadataDirectBuffer().duplicate();
      final byte[] metadata = new byte[direct.remaining()];
      direct.get(metadata);
      final PackedColumns columns = PackedColumns.read(metadata);
      final long length = table.getBuffer().getLength();
      if (columns == null || !columns.fits(length, new int[0])) {
        return null;
      }
      try (HostMemoryBuffer bytes = HostMemoryBuffer.allocate(length)) {
        bytes.copyFromDeviceBuffer(table.getBuffer());
        final LayoutCheck check = new LayoutCheck(columns, bytes.getAddress(), length, first);
        return check.isAsMade() ? columns.write() : null;
      }
    }

    private boolean isAsMade() {
      if (columns.columns() != 3 || columns.type(0) != INT32 || columns.children(0) != 0) {
        return false;
      }
      final int texts = columns.end(0);
      final int lists = columns.end(texts);
      return columns.type(texts) == PackedColumns.STRING
          && columns.type(lists) == PackedColumns.LIST
          && columns.boundIndex(texts) >= 0
          && columns.boundIndex(lists) >= 0
          && ints(0).equals(Arrays.asList(INTS).subList(first, INTS.length))
          && texts(texts).equals(Arrays.asList(TEXTS).subList(first, TEXTS.length))
          && lists(lists).equals(LISTS.subList(first, LISTS.size()));
    }

    private boolean isNull(final int entry, final int row) {
      final long mask = columns.mask(entry);
      return mask >= 0 && (Platform.getByte(null, address + mask + row / 8) >> row % 8 & 1) == 0;
    }

    private List<Integer> ints(final int entry) {
      final List<Integer> values = new ArrayList<>();
      for (int row = 0; row < columns.rows(entry); row++) {
        values.add(isNull(entry, row) ? null : number(entry, row));
      }
      return values;
    }

    private int number(final int entry, final int row) {
      final long data = columns.data(entry);
      return data < 0 ? 0 : Platform.getInt(null, address + data + 4L * row);
    }

    private List<String> texts(final int entry) {
      final List<String> values = new ArrayList<>();
      for (int row = 0; row < columns.rows(entry); row++) {
        final int begin = number(entry + 1, row);
        final int end = number(entry + 1, row + 1);
        final long data = columns.data(entry);
        if (begin < 0 || end < begin || end > length - Math.max(0, data)) {
          return List.of();
        }
        final byte[] text = new byte[end - begin];
        Platform.copyMemory(
            null, address + data + begin, text, Platform.BYTE_ARRAY_OFFSET, text.length);
        values.add(isNull(entry, row) ? null : new String(text, StandardCharsets.UTF_8));
      }
      return values;
    }

    private List<List<Integer>> lists(final int entry) {
      final List<Integer> items = ints(columns.end(entry + 1));
      final List<List<Integer>> values = new ArrayList<>();
      for (int row = 0; row < columns.rows(entry); row++) {
        final int begin = number(entry + 1, row);
        final int end = number(entry + 1, row + 1);
        if (begin < 0 || end < begin || end > items.size()) {
          return List.of();
        }
        values.add(items.subList(begin, end));
      }
      return values;
    }
  }
}
