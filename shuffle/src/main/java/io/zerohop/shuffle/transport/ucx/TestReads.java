package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.LogCode;
import io.zerohop.device.Message;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.ucx.UcxPeer.Gets;
import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices.RdmaDevices;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.memory.GetQuestions;
import io.zerohop.shuffle.transport.ucx.memory.GetQuestions.TestTarget;
import io.zerohop.shuffle.transport.ucx.memory.TestRange;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Locale;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads of one peer's test range, each waited for, a limited time, by which first contact finds out
 * what can be got of it. For one thread; the peer and the destinations are the caller's.
 */
final class TestReads {
  private static final Logger LOG = LoggerFactory.getLogger(TestReads.class);

  private final UcxPeer peer;
  private final long incarnation;
  private final int largest;
  private final Duration limit;

  /**
   * @param incarnation of the peer, which says what its range has in it
   * @param largest bytes of the largest read
   * @param limit of each read
   */
  TestReads(final UcxPeer peer, final long incarnation, final int largest, final Duration limit) {
    this.peer = peer;
    this.incarnation = incarnation;
    this.largest = largest;
    this.limit = limit;
  }

  /**
   * Reads the peer's test range, and that in GPU memory if both have one; what becomes of the
   * latter keeps nobody from the rest.
   *
   * @param host where the former goes; stays the caller's
   * @param gpu where the latter goes; absent if that is not tried
   * @throws UcxException if the former does not work in time
   */
  SelfTest run(
      final SelfTest.Targets targets,
      final TestRange.Destination host,
      final TestRange.@Nullable Destination gpu) {
    try {
      final GetKind near = GetKind.of(this, targets.host(), host);
      final double nearRate = rate(targets.host(), host);
      final GetKind far = gpu == null ? GetKind.NONE : gpuGets(targets.gpu(), gpu);
      final double farRate =
          gpu == null || far == GetKind.NONE || far == GetKind.FAILED
              ? 0
              : rate(targets.gpu(), gpu);
      return new SelfTest(targets.rdma(), near, nearRate, far, farRate);
    } catch (final TimeoutException e) {
      throw new UcxException(
          Message.of(
                  "a test read of an executor's memory did not end within "
                      + limit.toMillis()
                      + " ms")
              .at("executor " + peer.name()),
          e);
    } catch (final ExecutionException e) {
      throw new UcxException(
          Message.of("a test read of an executor's memory failed")
              .at("executor " + peer.name())
              .because(Objects.requireNonNullElse(e.getCause(), e)),
          e);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new UcxException("interrupted while memory of a peer was read for a test", e);
    }
  }

  /** By the second read of the whole range: in the first one memory is mapped. */
  private double rate(final TestTarget target, final TestRange.Destination to)
      throws ExecutionException, TimeoutException, InterruptedException {
    final long begin = peer.clock().nanos();
    get(target, to, largest);
    return 1e9 * largest / Math.max(1, peer.clock().since(begin));
  }

  private GetKind gpuGets(final TestTarget target, final TestRange.Destination to)
      throws InterruptedException {
    try {
      return GetKind.of(this, target, to);
    } catch (final ExecutionException | TimeoutException e) {
      ShuffleCode.GPU_GET_FAILED
          .says("a test read of an executor's GPU memory failed; its GPU blocks are sent")
          .at("executor " + peer.name())
          .because(e)
          .warn(LOG);
      return GetKind.FAILED;
    }
  }

  /**
   * Reads so many bytes from its beginning by a get, and compares them.
   *
   * @throws ExecutionException if the get fails, or brings other bytes than the peer has there
   */
  void compare(final TestTarget target, final TestRange.Destination to, final long bytes)
      throws ExecutionException, TimeoutException, InterruptedException {
    to.prepare(bytes);
    get(target, to, bytes);
    final long wrong = to.firstWrong(incarnation, bytes);
    if (wrong >= 0) {
      throw new ExecutionException(
          new UcxException(
              "a get of " + bytes + " bytes brought another byte " + wrong + " than there is",
              null));
    }
  }

  /** Reads so many bytes from its beginning by a get. */
  void get(final TestTarget target, final TestRange.Destination to, final long bytes)
      throws ExecutionException, TimeoutException, InterruptedException {
    final CompletableFuture<Void> end = new CompletableFuture<>();
    peer.gets()
        .submit(
            new Gets.Get(
                target.key(),
                target.address(),
                to.slab(),
                0,
                bytes,
                () -> true,
                failure -> {
                  if (failure == null) {
                    end.complete(null);
                  } else {
                    end.completeExceptionally(new UcxException(failure, null));
                  }
                }));
    await(end);
  }

  /** Events that the peer's UCX has handled so far. */
  long events() throws ExecutionException, TimeoutException, InterruptedException {
    final ByteBuffer answer = await(peer.ask(GetQuestions.events()));
    return answer.getLong();
  }

  private <T> T await(final CompletableFuture<T> end)
      throws ExecutionException, TimeoutException, InterruptedException {
    return peer.clock().get(end, limit);
  }

  /**
   * The side that does the work of gets from a peer. UCX does not say: where anything that
   * one-sided gets need is missing it emulates them by messages, which are slower, and with which
   * the owner's CPU reads the memory, also for a reader that has died since. So the peer counts the
   * events that its UCX handles: each emulated get is one at least, a one-sided one is none.
   */
  enum GetKind {
    /** There is nothing to get. */
    NONE("no gets"),
    /** An adapter or a link does it, and the owner's CPU takes no part. */
    ONE_SIDED("one-sided gets"),
    /** The owner's UCX does it. */
    EMULATED("emulated gets"),
    /** The owner's UCX was busy with others all the time. */
    UNKNOWN("gets that may be emulated (the owner was too busy to tell)"),
    /** A get did not work. */
    FAILED("gets that fail");

    /** Gets of a trial, one after the other. */
    private static final int GETS = 16;

    /** Of gets that are tried before: UCX does small ones in other ways than large ones. */
    private static final long[] SIZES = {1, 64, 900, 4 << 10};

    /** More than what UCX copies on the way, whichever way it does gets. */
    private static final long BYTES = 4 << 10;

    /** Others make the peer's UCX busy, such as this executor's first contact the other way. */
    private static final int TRIALS = 5;

    private static final int LONGEST_PAUSE_MS = 20;

    private final String words;

    GetKind(final String words) {
      this.words = words;
    }

    /**
     * Finds out by gets of 4 KiB each, after one of each size, which have to bring the right bytes.
     *
     * @param target what to get; NONE is the answer if it is none
     * @param to of the target's kind of memory
     * @throws ExecutionException if a get fails, or brings other bytes
     * @throws TimeoutException if one does not end in time
     */
    static GetKind of(
        final TestReads reads, final TestTarget target, final TestRange.Destination to)
        throws ExecutionException, TimeoutException, InterruptedException {
      if (target.bytes() == 0) {
        return NONE;
      }
      for (final long bytes : SIZES) {
        reads.compare(target, to, bytes); // The first one connects, which is work for both.
      }
      reads.compare(target, to, reads.largest);
      boolean quiet = false;
      for (int trial = 0; trial < TRIALS; trial++) {
        final long before = reads.events();
        for (int i = 0; i < GETS; i++) {
          reads.get(target, to, BYTES);
        }
        final long after = reads.events();
        if (after - before < GETS) {
          return ONE_SIDED; // One trial shows it, and none shows the contrary: others may have
          // come.
        }
        // Whoever does the same the other way is not to keep step.
        reads
            .peer
            .clock()
            .sleep(Duration.ofMillis(ThreadLocalRandom.current().nextInt(LONGEST_PAUSE_MS)));
        quiet |= reads.events() == after;
      }
      return quiet ? EMULATED : UNKNOWN;
    }

    /** For the log. */
    String words() {
      return words;
    }
  }

  /**
   * The results of first contact with a peer: gets are taken where they are one-sided.
   *
   * @param rdma whether both nodes have an adapter
   * @param host gets from host memory to host memory
   * @param hostRate bytes a second by those
   * @param gpu gets from GPU to GPU
   * @param gpuRate bytes a second by those; 0 if they are out of the question
   */
  record SelfTest(boolean rdma, GetKind host, double hostRate, GetKind gpu, double gpuRate) {
    /** The targets that can be got of a peer, and whether both nodes have an adapter. */
    record Targets(boolean rdma, TestTarget host, TestTarget gpu) {}

    /** Whether host memory is got: where an adapter does it, and a busy owner is no evidence. */
    boolean takesHost() {
      return rdma && (host == GetKind.ONE_SIDED || host == GetKind.UNKNOWN);
    }

    /**
     * Whether GPU memory is got into that of this GPU. Not if that is emulated, however fast: the
     * owner's UCX would read the memory, also of a lease that has ended.
     */
    boolean takesGpu() {
      return gpu == GetKind.ONE_SIDED || rdma && gpu == GetKind.UNKNOWN;
    }

    /**
     * One line for the log: what is got, how fast, and what is missing if something is not.
     *
     * @param got whether host memory is
     */
    String describe(final boolean got, final GpuReach reach) {
      final String near =
          got
              ? String.format(Locale.ROOT, "%s, %.1f GB/s", host.words(), hostRate / 1e9)
              : "host memory: sent, since " + obstacle();
      return reach == GpuReach.NO_GPU
          ? near
          : near + "; GPU memory: " + reach.describe(gpu, gpuRate);
    }

    private String obstacle() {
      return rdma
          ? ShuffleCode.GETS_EMULATED
              .says("libucx emulates gets although both nodes have an RDMA device")
              .remedy("see what it chooses by UCX_LOG_LEVEL=info UCX_PROTO_INFO=y")
              .text()
          : ShuffleCode.NO_RDMA_DEVICE
              .says("this node or the other has no RDMA device")
              .because(RdmaDevices.FOLDER + " is empty")
              .text();
    }
  }

  /**
   * The answers to whether blocks in a peer's GPU memory are got into that of this GPU, and why
   * not.
   */
  enum GpuReach {
    /** This executor has no GPU. */
    NO_GPU(null, ""),
    /** They are. */
    DIRECT(null, ""),
    /** UCX reaches no GPU memory here. */
    NOT_HERE(
        ShuffleCode.GPU_NOT_HERE,
        "this node's UCX does not reach it (libucx without CUDA, or jucx before 1.16)"),
    /** An adapter's writes to this GPU's memory cannot be waited for. */
    NOT_ORDERED(
        ShuffleCode.GPU_NOT_ORDERED,
        "the driver orders no adapter's writes to this GPU's memory, and cannot flush them"),
    /** Nothing of this GPU's memory could be had to try it. */
    NO_ROOM(ShuffleCode.GPU_NO_ROOM, "there were not 16 MiB of this GPU's memory to try it"),
    /** UCX refused it. */
    NOT_REGISTERED(
        ShuffleCode.GPU_NOT_REGISTERED,
        "UCX cannot register this GPU's memory (UCX_LOG_LEVEL=info says why)"),
    /** UCX reaches no GPU memory there. */
    NOT_THERE(
        ShuffleCode.GPU_NOT_THERE,
        "the other node has no GPU memory that UCX reaches (libucx without CUDA?)"),
    /** A get from this peer failed, now or when it was connected before, or from all others. */
    FAILED(
        ShuffleCode.GPU_FAILED_BEFORE,
        "a test read of it failed, which the log has; it is not tried again"),
    /** Gets are possible, but the owner's UCX does the work, or may do so. */
    EMULATED(ShuffleCode.GPU_EMULATED, "gets of it are emulated");

    /** Absent where nothing is missing. */
    private final @Nullable LogCode code;

    private final String reason;

    GpuReach(final @Nullable LogCode code, final String reason) {
      this.code = code;
      this.reason = reason;
    }

    /** One part of a line for the log. */
    String describe(final GetKind gets, final double rate) {
      if (code == null) {
        return String.format(Locale.ROOT, "%s, %.1f GB/s", gets.words(), rate / 1e9);
      }
      final String more = this == EMULATED ? " (" + wanted() + ")" : "";
      return code.says("sent, since " + reason + more).text();
    }

    private static String wanted() {
      return "over NVLink they need libucx 1.22 or later; over an adapter nvidia-peermem, which is "
          + (RdmaDevices.peermem() ? "" : "not ")
          + "loaded here, or dma-buf";
    }
  }
}
