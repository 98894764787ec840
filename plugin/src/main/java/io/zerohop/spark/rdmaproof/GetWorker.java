package io.zerohop.spark.rdmaproof;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.Device;
import io.zerohop.device.cuda.CudaDevice;
import io.zerohop.device.host.HostDevice;
import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.ucx.engine.LoopbackTest;
import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxMemory;
import io.zerohop.shuffle.transport.ucx.engine.UcxLoader;
import io.zerohop.shuffle.transport.ucx.memory.PatternMemory;
import io.zerohop.spark.rdmaproof.Proof.MemoryKind;
import io.zerohop.spark.rdmaproof.Proof.ProofException;
import io.zerohop.spark.rdmaproof.ProofLine.ProofWords;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A process that owns memory or reads it, with UCX as executors start it. It holds no secrets,
 * because UCX does not authenticate. It does what its parent asks for line by line ({@link
 * ProofWords}), and ends with its standard input.
 *
 * <pre>
 *  open KIND GPU ADDRESS          starts UCX        -> nothing
 *  worker                                           -> its address, description
 *  memory BYTES SEED              fills, registers  -> address, key, nanoseconds of registering
 *  connect WORKER                                   -> nothing
 *  get KEY ADDRESS PLACE BYTES SEED MILLIS          -> nanoseconds, first wrong byte or -1
 *  rate KEY ADDRESS BYTES DEPTH BUDGET MILLIS       -> gets, nanoseconds of all, of the median
 *  begin KEY ADDRESS BYTES COUNT  starts gets       -> nothing
 *  await MILLIS                   until they end    -> under way, well, ill, more than once, nanoseconds
 *  under-way                                        -> gets that have not ended
 *  release                        by force          -> nothing
 *  loopback                       does UCX go on?   -> nothing
 * </pre>
 */
final class GetWorker {
  /** Most memory that the other host may ask for: it must not exhaust this one. */
  static final long MAX_BYTES = 1L << 30;

  /** What an answer's line begins with: libraries print to standard output, too. */
  static final String MARK = "zerohop-proof: ";

  private static final HexFormat HEX = HexFormat.of();

  private final Clock clock = Clock.system();
  private final Housekeeping housekeeping = new Housekeeping(clock);

  // From "open" on.
  private @Nullable Device device;
  private Tier kind = Tier.HOST;
  private @Nullable UcxEngine engine;
  private String description = "";

  // From "memory" on.
  private @Nullable PatternMemory memory;
  private @Nullable UcxMemory registered;

  /** From "connect" to "release". */
  private @Nullable UcxEndpoint endpoint;

  private Begun begun = new Begun(0, clock);

  private GetWorker() {}

  /** Serves until standard input ends, and ends the process: what hangs must not keep it. */
  static void main() {
    final GetWorker worker = new GetWorker();
    try {
      final BufferedReader in =
          new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        say(worker.answer(ProofWords.split(line)));
      }
    } catch (final IOException e) {
      Runtime.getRuntime().halt(1);
    }
    Runtime.getRuntime().halt(0);
  }

  /** Prints a line for the process that started this one. */
  static void say(final List<String> words) throws IOException {
    // Not a stream that others print to as well.
    final FileOutputStream out = new FileOutputStream(FileDescriptor.out);
    out.write((MARK + ProofWords.join(words) + "\n").getBytes(StandardCharsets.UTF_8));
    out.flush();
  }

  private List<String> answer(final List<String> question) {
    try {
      return answer(question.get(0), question.subList(1, question.size()));
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      return ProofWords.failed(e);
    } catch (final RuntimeException | LinkageError | OutOfMemoryError e) {
      return ProofWords.failed(e);
    }
  }

  private List<String> answer(final String what, final List<String> words)
      throws InterruptedException {
    return switch (what) {
      case "open" -> open(words.get(0), Integer.parseInt(words.get(1)), words.get(2));
      case "worker" -> ProofWords.ok(HEX.formatHex(engine().address()), description);
      case "memory" -> memory(number(words, 0), number(words, 1));
      case "connect" -> connect(words.get(0));
      case "get" -> get(words);
      case "rate" -> rate(words);
      case "begin" -> begin(words);
      case "await" -> await(number(words, 0));
      case "under-way" -> ProofWords.ok(begun.underWay());
      case "release" -> release();
      case "loopback" -> loopback();
      default -> throw new ProofException("there is no request " + what);
    };
  }

  private static long number(final List<String> words, final int at) {
    return Long.parseLong(words.get(at));
  }

  private UcxEngine engine() {
    if (engine == null) {
      throw new ProofException("UCX has not been started");
    }
    return engine;
  }

  private List<String> open(final String wanted, final int ordinal, final String address) {
    if (engine != null) {
      throw new ProofException("UCX has been started");
    }
    kind = MemoryKind.of(wanted) == MemoryKind.GPU ? Tier.DEVICE : Tier.HOST;
    String pci = null;
    final Device opened;
    if (kind == Tier.DEVICE) {
      final CudaDevice gpu = new CudaDevice(ordinal, CudaDevice.DEFAULT_MULTIPROCESSORS);
      pci = gpu.pciAddress();
      opened = gpu;
    } else {
      opened = new HostDevice();
    }
    device = opened;
    final NetworkDevices devices = NetworkDevices.of(address, pci).orElse(null);
    final UcxEngine started = UcxLoader.start(null, devices, opened::enter, clock);
    engine = started;
    if (started.rdma()) {
      housekeeping.every("ucx-alarm", UcxEngine.WAKE_PERIOD, started::wake);
    }
    LoopbackTest.run(started);
    description =
        started.library()
            + (devices == null && !NetworkDevices.areChosen()
                ? ", listens on all interfaces, since none has this host's address"
                : "");
    return ProofWords.ok();
  }

  private List<String> memory(final long bytes, final long seed) {
    final UcxEngine ucx = engine;
    final Device opened = device;
    if (ucx == null || opened == null || memory != null) {
      throw new ProofException("UCX has not been started, or there is memory");
    }
    if (kind == Tier.DEVICE && !ucx.reachesGpuMemory()) {
      throw new ProofException(
          "UCX reaches no GPU memory here: install a libucx built with CUDA ("
              + ucx.describe()
              + ")");
    }
    if (bytes > MAX_BYTES) {
      throw new ProofException(bytes + " bytes are more than " + MAX_BYTES);
    }
    final PatternMemory made = PatternMemory.segment(opened, bytes);
    try {
      made.fill(seed);
      final long begin = clock.nanos();
      final UcxMemory known = ucx.register(kind, made.address(), made.bytes());
      final long nanos = clock.since(begin);
      registered = known;
      memory = made;
      return ProofWords.ok(made.address(), HEX.formatHex(known.key()), nanos);
    } finally {
      if (memory == null) {
        made.close(); // Less may be asked for.
      }
    }
  }

  private List<String> connect(final String worker) {
    release();
    endpoint = engine().connect(HEX.parseHex(worker), lost -> {});
    return ProofWords.ok();
  }

  private List<String> release() {
    if (endpoint != null) {
      endpoint.close();
      endpoint = null;
    }
    return ProofWords.ok();
  }

  private List<String> loopback() {
    LoopbackTest.run(engine());
    return ProofWords.ok();
  }

  /** Gets to the beginning of the own memory. */
  private void submit(
      final byte[] key, final long from, final long bytes, final Begun gets, final int number) {
    if (endpoint == null || memory == null || bytes < 0 || bytes > memory.bytes()) {
      throw new ProofException("there is no owner, or no room for " + bytes + " bytes");
    }
    gets.started();
    endpoint.get(
        key,
        from,
        memory.address(),
        bytes,
        kind == Tier.DEVICE ? registered : null,
        failure -> gets.ended(number, failure));
  }

  private List<String> get(final List<String> words) throws InterruptedException {
    final long place = number(words, 2);
    final long bytes = number(words, 3);
    final PatternMemory to = memory;
    if (to == null) {
      throw new ProofException("there is no memory");
    }
    to.poison(bytes);
    begun = new Begun(1, clock);
    submit(HEX.parseHex(words.get(0)), number(words, 1) + place, bytes, begun, 0);
    begun.awaitWell(number(words, 5), bytes);
    return ProofWords.ok(begun.nanos(), to.firstWrong(number(words, 4), place, bytes));
  }

  /** One get before, which connects and maps; then until the budget is spent, three at least. */
  private List<String> rate(final List<String> words) throws InterruptedException {
    final byte[] key = HEX.parseHex(words.get(0));
    final long from = number(words, 1);
    final long bytes = number(words, 2);
    final int depth = (int) Math.min(Begun.MAX, Math.max(1, number(words, 3)));
    final long budget = TimeUnit.MILLISECONDS.toNanos(number(words, 4));
    final long limit = number(words, 5);
    together(key, from, bytes, 1, limit);
    final long[] each = new long[Begun.MAX];
    int rounds = 0;
    long all = 0;
    while (rounds < each.length && (rounds < 3 || all < budget)) {
      each[rounds] = together(key, from, bytes, depth, limit);
      all += each[rounds++];
    }
    final long[] sorted = Arrays.copyOf(each, rounds);
    Arrays.sort(sorted);
    return ProofWords.ok((long) rounds * depth, all, sorted[rounds / 2]);
  }

  private long together(
      final byte[] key, final long from, final long bytes, final int depth, final long limit)
      throws InterruptedException {
    begun = new Begun(depth, clock);
    for (int i = 0; i < depth; i++) {
      submit(key, from, bytes, begun, i);
    }
    begun.awaitWell(limit, bytes);
    return begun.nanos();
  }

  private List<String> begin(final List<String> words) {
    final byte[] key = HEX.parseHex(words.get(0));
    final int count = (int) Math.min(Begun.MAX, number(words, 3));
    begun = new Begun(count, clock);
    for (int i = 0; i < count; i++) {
      submit(key, number(words, 1), number(words, 2), begun, i);
    }
    return ProofWords.ok();
  }

  private List<String> await(final long millis) throws InterruptedException {
    final long begin = clock.nanos();
    begun.await(Duration.ofMillis(millis));
    return ProofWords.ok(
        begun.underWay(), begun.well(), begun.ill(), begun.twice(), clock.since(begin));
  }

  /** Gets that were begun together, and how each has ended. Thread safe. */
  private static final class Begun {
    /** Gets that may be begun together. */
    static final int MAX = 1000;

    private final Clock clock;
    private final long begin;

    @GuardedBy("this")
    private final int[] ends;

    @GuardedBy("this")
    private int started;

    @GuardedBy("this")
    private int done;

    @GuardedBy("this")
    private int failed;

    @GuardedBy("this")
    private long lastEnd;

    @GuardedBy("this")
    private String failure = "";

    Begun(final int count, final Clock clock) {
      this.clock = clock;
      ends = new int[count];
      begin = clock.nanos();
    }

    synchronized void started() {
      started++;
    }

    /**
     * One has ended.
     *
     * @param how it has failed; absent if it has brought its bytes
     */
    synchronized void ended(final int number, final @Nullable String how) {
      ends[number]++;
      lastEnd = clock.nanos();
      if (ends[number] == 1) {
        done++;
        failed += how == null ? 0 : 1;
        failure = how == null ? failure : how;
      }
      notifyAll();
    }

    /** Waits until all have ended, or so long. */
    synchronized void await(final Duration limit) throws InterruptedException {
      final long end = clock.in(limit);
      while (done < started && !clock.isOver(end)) {
        clock.await(this, clock.left(end));
      }
    }

    /**
     * Waits until all have brought their bytes.
     *
     * @throws ProofException if one fails, or does not end within the limit
     */
    synchronized void awaitWell(final long millis, final long bytes) throws InterruptedException {
      await(Duration.ofMillis(millis));
      if (done < started) {
        throw new ProofException(
            "a get of " + bytes + " bytes did not end within " + millis + " ms");
      }
      if (failed > 0) {
        throw new ProofException("a get of " + bytes + " bytes failed: " + failure);
      }
    }

    synchronized int underWay() {
      return started - done;
    }

    synchronized int well() {
      return done - failed;
    }

    synchronized int ill() {
      return failed;
    }

    /** Those whose end was told more than once, which must not be. */
    synchronized long twice() {
      long twice = 0;
      for (final int each : ends) {
        twice += each > 1 ? 1 : 0;
      }
      return twice;
    }

    /** From the begin to the last end. */
    synchronized long nanos() {
      return lastEnd - begin;
    }
  }
}
