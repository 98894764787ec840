package io.zerohop.device.cuda;

import static java.nio.ByteOrder.nativeOrder;

import io.zerohop.device.BlockChecksums;
import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.DeviceCode;
import io.zerohop.device.Message;
import io.zerohop.device.RowHashBatch;
import io.zerohop.device.Signal;
import io.zerohop.device.Signal.SignalEpoch;
import io.zerohop.device.SpliceBatch;
import io.zerohop.device.WaitException;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.cuda.CudaCopyBatch.RangeCutter;
import io.zerohop.device.cuda.KernelArguments.GatherArguments;
import io.zerohop.device.cuda.KernelArguments.RowHashArguments;
import io.zerohop.device.cuda.KernelArguments.SpliceArguments;
import io.zerohop.device.cuda.LaunchSignals.LaunchRing;
import io.zerohop.device.cuda.LaunchSignals.StreamState;
import io.zerohop.device.cuda.StreamHandle.EngineStreams;
import io.zerohop.device.cuda.StreamHandle.StreamWait;
import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import jcuda.Pointer;
import jcuda.driver.CUstream;
import jcuda.driver.JCudaDriver;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A CUDA stream. A batch is one kernel launch whatever it holds; its large copies go to copy
 * engines at the same time. Waits are made on the GPU by one warp, with a limit, and end at the
 * signal's abort word or this stream's own; what is behind a failed wait does nothing.
 *
 * <p>A batch may be filled again as soon as it was submitted.
 *
 * <p>On the calling thread's default stream, copies are in order with what other libraries enqueue
 * there. Such a stream is submitted to by one thread; any thread may wait for it or close it.
 */
final class CudaCopyStream implements CopyStream {
  private static final Logger LOG = LoggerFactory.getLogger(CudaCopyStream.class);
  private static final Duration CLOSE_LIMIT = Duration.ofSeconds(20);
  private static final int RING_BYTES = 8 << 20;
  private static final int SPINS = 5_000;
  private static final int LIST_BYTES_PER_COPY = 2 * Long.BYTES + Integer.BYTES;

  /**
   * Of row hashes and checksums. They read the GPU's own memory and end soon, so that they may have
   * all of it; what moves over a link has its bound because more would only wait for the link.
   */
  private static final int HASH_BLOCKS_PER_MULTIPROCESSOR = 4;

  /** {@code struct Checksums} of crc.cuh. */
  private static final int CHECKSUM_STRUCT_BYTES = 40;

  private final CudaContext context;
  private final Kernels kernels;
  private final Kernels.Copier copier;
  private final Consumer<Object> onClose;
  private final String name;
  private final int mostBlocks;
  private final StreamHandle stream;
  private final DeviceCounter finished;
  private final StreamState state;
  private final LaunchRing ring;
  private final GatherArguments arguments;
  private final LaunchSignals signals;
  private @Nullable EngineStreams engines;
  private int launch;

  /** Whether the last launch is the last of all that was submitted. */
  private boolean endsWithLaunch;

  private boolean closed;

  /**
   * @param ofThread whether to use the calling thread's default stream instead of one of its own
   */
  CudaCopyStream(
      final CudaContext context,
      final Consumer<Object> onClose,
      final String name,
      final Kernels.Copier copier,
      final int mostMultiprocessors,
      final boolean ofThread) {
    this.context = context;
    this.kernels = context.kernels();
    this.copier = copier;
    this.onClose = onClose;
    this.name = name;
    this.mostBlocks = Math.max(1, Math.min(mostMultiprocessors, kernels.multiprocessors()));
    context.enter();
    stream = ofThread ? StreamHandle.ofThread(context) : StreamHandle.create(context);
    DeviceCounter counter = null;
    StreamState words = null;
    boolean done = false;
    try {
      counter = new DeviceCounter(context);
      words = new StreamState(context);
      ring = new LaunchRing(context, RING_BYTES, words::ended);
      done = true;
    } finally {
      if (!done) {
        stream.destroy();
        if (counter != null) {
          counter.close();
        }
        if (words != null) {
          words.close();
        }
      }
    }
    finished = counter;
    state = words;
    arguments = new GatherArguments(state.address(), finished.address());
    signals = new LaunchSignals(ring, arguments);
  }

  private void mark(final boolean byLaunch) {
    endsWithLaunch = byLaunch;
    stream.mark();
  }

  @Override
  public CopyBatch newBatch() {
    return new CudaCopyBatch();
  }

  @Override
  public void submit(final CopyBatch batch) {
    submit(batch, List.of(), List.of(), Duration.ZERO);
  }

  @Override
  public void submit(final SpliceBatch batch) {
    enter();
    if (batch.isEmpty()) {
      return;
    }
    final int bytes = SpliceArguments.bytes(batch);
    if (bytes > ring.largest()) {
      throw new IllegalArgumentException(
          "too many pieces of columns for one submission: " + (batch.offsets() + batch.runs()));
    }
    final int number = ++launch;
    final int at = ring.take(bytes, number);
    arguments.begin(number, signals.conditional());
    final SpliceArguments work = new SpliceArguments(batch, ring.bytes(), at, ring.address(at));
    kernels.launchSplice(
        stream.stream(), Math.min(mostBlocks, work.blocks()), arguments.struct(), work.struct());
    mark(true);
  }

  @Override
  public void submit(final RowHashBatch batch, final long resultAddress) {
    enter();
    batch.checkComplete();
    int table = 0;
    while (table < batch.tables()) {
      final RowHashArguments work = new RowHashArguments(batch, table, ring.largest());
      if (work.chunks() > 0) {
        launchRowHash(work, resultAddress);
      }
      table = work.end();
    }
  }

  private void launchRowHash(final RowHashArguments work, final long resultAddress) {
    final int number = ++launch;
    final int at = ring.take(work.bytes(), number);
    arguments.begin(number, signals.conditional());
    work.write(ring.bytes(), at, ring.address(at), resultAddress);
    final int most = HASH_BLOCKS_PER_MULTIPROCESSOR * kernels.multiprocessors();
    kernels.launchRowHash(
        stream.stream(), Math.min(most, work.chunks()), arguments.struct(), work.struct());
    mark(true);
  }

  @Override
  public BlockChecksums checksums(
      final long blocks, final long offsets, final int count, final long bytes) {
    enter();
    final long needed = BlockChecksums.resultBytes(count, bytes);
    if (needed > ring.largest()) {
      throw new IllegalArgumentException("too many blocks for one submission: " + count);
    }
    final int number = ++launch;
    final int at = ring.take((int) needed, number);
    return launchChecksums(number, blocks, 0, offsets, ring.address(at), count, bytes);
  }

  @Override
  public BlockChecksums checksums(final long[] addresses, final long[] starts) {
    enter();
    final int count = addresses.length;
    final int listBytes = LaunchRing.aligned(Long.BYTES * (2 * count + 1));
    final long needed = listBytes + BlockChecksums.resultBytes(count, starts[count]);
    if (count > BlockChecksums.MAX_LISTED || needed > ring.largest()) {
      throw new IllegalArgumentException("too many blocks for one submission: " + count);
    }
    final int number = ++launch;
    final int at = ring.take((int) needed, number);
    final LongBuffer list = ring.bytes().slice(at, listBytes).order(nativeOrder()).asLongBuffer();
    list.put(addresses).put(starts, 0, count + 1);
    final long offsets = ring.address(at) + (long) Long.BYTES * count;
    final long results = ring.address(at) + listBytes;
    return launchChecksums(number, 0, ring.address(at), offsets, results, count, starts[count]);
  }

  private BlockChecksums launchChecksums(
      final int number,
      final long blocks,
      final long addresses,
      final long offsets,
      final long results,
      final int count,
      final long bytes) {
    final int pieces = BlockChecksums.pieces(bytes);
    final byte[] struct = new byte[CHECKSUM_STRUCT_BYTES];
    ByteBuffer.wrap(struct)
        .order(nativeOrder())
        .putLong(blocks)
        .putLong(addresses)
        .putLong(offsets)
        .putLong(results)
        .putInt(count)
        .putInt(pieces);
    arguments.begin(number, signals.conditional());
    kernels.launchChecksums(
        stream.stream(),
        HASH_BLOCKS_PER_MULTIPROCESSOR * kernels.multiprocessors(),
        pieces,
        arguments.struct(),
        Pointer.to(struct));
    mark(true);
    return new BlockChecksums(results, count);
  }

  @Override
  public void await(final Signal signal, final int epoch, final Duration limit) {
    enter();
    launchSignals(List.of(new SignalEpoch(signal, epoch)), List.of(), limit);
    mark(true);
  }

  @Override
  public void raise(final Signal signal, final int epoch) {
    enter();
    final long address = LaunchSignals.addressOf(signal);
    if (signals.conditional()) {
      launchSignals(List.of(), List.of(new SignalEpoch(signal, epoch)), Duration.ZERO);
    } else {
      // Needs no room on the GPU; orders everything before it like a fence at system scope.
      check(
          JCudaDriver.cuStreamWriteValue32(stream.stream(), Addresses.device(address), epoch, 0),
          "cuStreamWriteValue32");
    }
    mark(false);
  }

  @Override
  public void submit(
      final CopyBatch batch,
      final List<SignalEpoch> after,
      final List<SignalEpoch> then,
      final Duration limit) {
    enter();
    if (!(batch instanceof CudaCopyBatch copies)) {
      throw new IllegalArgumentException("not a batch of a CUDA device: " + batch);
    }
    if (signals.conditional() || !after.isEmpty()) {
      copies.dissolveLarge(); // The engines would not see that a wait has failed.
    }
    final boolean byEngine = !copies.large().isEmpty();
    final boolean byLaunch =
        copies.small() > 0 || !byEngine && !(after.isEmpty() && then.isEmpty());
    if (!byEngine && !byLaunch) {
      return;
    }
    boolean done = false;
    try {
      if (byEngine) {
        engines().copy(stream.stream(), copies.large());
      }
      if (copies.small() > 0) {
        launchCopies(copies, after, byEngine ? List.of() : then, limit);
      } else if (byLaunch) {
        launchSignals(after, then, limit);
      }
      done = true;
    } finally {
      // Also after a failure: who closes the stream waits for what has begun.
      if (byEngine) {
        engines().join(stream.stream());
      }
      mark(done && !byEngine);
    }
    if (byEngine) {
      then.forEach(next -> raise(next.signal(), next.epoch()));
    }
  }

  private EngineStreams engines() {
    if (engines == null) {
      engines = new EngineStreams(context);
    }
    return engines;
  }

  /** One launch, or several if the list is longer than half the ring. */
  private void launchCopies(
      final CudaCopyBatch batch,
      final List<SignalEpoch> after,
      final List<SignalEpoch> then,
      final Duration limit) {
    final int fixed =
        (after.size() + then.size()) * LaunchSignals.BYTES
            + (mostBlocks * copier.warps() + 1) * RangeCutter.ENTRY_BYTES
            + LaunchSignals.BYTES;
    final int most = (ring.largest() - fixed) / LIST_BYTES_PER_COPY;
    if (most <= 0) {
      throw new IllegalArgumentException(
          "too many signals for one submission: " + (after.size() + then.size()));
    }
    for (int first = 0; first < batch.small(); first += most) {
      final int count = Math.min(most, batch.small() - first);
      final boolean last = first + count == batch.small();
      launchPart(
          batch, first, count, first == 0 ? after : List.of(), last ? then : List.of(), limit);
    }
  }

  private void launchPart(
      final CudaCopyBatch batch,
      final int first,
      final int count,
      final List<SignalEpoch> after,
      final List<SignalEpoch> then,
      final Duration limit) {
    long bytes = 0;
    for (int copy = first; copy < first + count; copy++) {
      bytes += batch.length(copy);
    }
    final long cost = RangeCutter.cost(bytes, count);
    final int warps = copier.warps();
    final int wanted =
        (int) Math.max(1, Math.min((long) mostBlocks * warps, cost / RangeCutter.MIN_RANGE_BYTES));
    final int signalBytes = (after.size() + then.size()) * LaunchSignals.BYTES;
    final int rangesAt = LaunchRing.aligned(count * LIST_BYTES_PER_COPY);
    final int signalsAt = rangesAt + LaunchRing.aligned((wanted + 1) * RangeCutter.ENTRY_BYTES);
    final int number = ++launch;
    final int at = ring.take(signalsAt + signalBytes, number);
    batch.write(first, count, ring.bytes(), at);
    final int ranges =
        RangeCutter.cut(
            copy -> batch.length(first + copy), count, cost, wanted, ring.bytes(), at + rangesAt);
    arguments.begin(number, signals.conditional());
    arguments.list(ring.address(at), count, ring.address(at + rangesAt), ranges);
    signals.write(number, at + signalsAt, after, then, limit);
    kernels.launchCopy(copier, stream.stream(), (ranges + warps - 1) / warps, arguments.pointer());
  }

  private void launchSignals(
      final List<SignalEpoch> after, final List<SignalEpoch> then, final Duration limit) {
    final int number = ++launch;
    final int at = ring.take((after.size() + then.size()) * LaunchSignals.BYTES, number);
    arguments.begin(number, signals.conditional());
    signals.write(number, at, after, then, limit);
    kernels.launchSignal(stream.stream(), arguments.pointer());
  }

  @Override
  public void synchronize(final Duration limit) {
    enter();
    if (!endsWithLaunch || !endsSoon()) {
      StreamWait.until(stream::query, limit, toString(), context.toString());
    }
    final WaitException failure = signals.takeFailure(state, toString());
    if (failure != null) {
      throw failure;
    }
  }

  /** Looks at the word that a launch writes in the end: asking the driver holds others up. */
  private boolean endsSoon() {
    for (int spin = 0; spin < SPINS; spin++) {
      if (state.ended(launch)) {
        return true;
      }
      Thread.onSpinWait();
    }
    return false;
  }

  /** The stream itself, for timing by its events. */
  CUstream handle() {
    return stream.stream();
  }

  private void enter() {
    if (closed) {
      throw new IllegalStateException(this + " is closed");
    }
    context.enter();
  }

  private void check(final int status, final String call) {
    CudaStatus.check(status, call, context.toString());
  }

  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    onClose.accept(this);
    context.enter();
    state.abort();
    try {
      StreamWait.untilDone(stream::query, CLOSE_LIMIT, toString(), context.toString());
      free();
    } catch (final ZerohopException e) {
      // Memory that a kernel may still use must not be freed; it goes with the process.
      context.markStuck();
      DeviceCode.COPY_STREAM_STUCK
          .says("a copy stream did not end when it was closed; its memory is kept")
          .at(toString())
          .because(e)
          .error(LOG, e);
      throw new ZerohopException(
          ZerohopException.Category.FATAL,
          Message.of(
                  "a copy stream did not end within "
                      + CLOSE_LIMIT
                      + ", so the memory that it uses is lost")
              .at(context + ", " + this)
              .remedy("restart the executor"),
          e);
    }
  }

  private void free() {
    if (engines != null) {
      engines.close();
    }
    stream.destroy();
    finished.close();
    ring.close();
    state.close();
  }

  @Override
  public String toString() {
    return "copy stream " + name;
  }

  /** A word in GPU memory in which the blocks of a launch count; zero at first. */
  private static final class DeviceCounter implements AutoCloseable {
    private static final int BYTES = Integer.BYTES;

    private final Addresses.Result word = new Addresses.Result();

    /**
     * Allocates it.
     *
     * @throws io.zerohop.device.ZerohopException if the GPU has no memory left
     */
    DeviceCounter(final CudaContext context) {
      CudaStatus.checkAllocation(
          JCudaDriver.cuMemAlloc(word, BYTES), "cuMemAlloc", context.toString(), BYTES);
      boolean done = false;
      try {
        CudaStatus.check(
            JCudaDriver.cuMemsetD8(word, (byte) 0, BYTES), "cuMemsetD8", context.toString());
        done = true;
      } finally {
        if (!done) {
          close();
        }
      }
    }

    long address() {
      return word.value();
    }

    /** Frees it; no launch may use it any more. */
    @Override
    public void close() {
      JCudaDriver.cuMemFree(word);
    }
  }
}
