package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.LogCode;
import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.ContactListener;
import io.zerohop.shuffle.transport.ControlChannel;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.shuffle.transport.Self;
import io.zerohop.shuffle.transport.remote.Wire;
import io.zerohop.shuffle.transport.remote.Wire.Questions;
import io.zerohop.shuffle.transport.ucx.TestReads.GetKind;
import io.zerohop.shuffle.transport.ucx.engine.NetworkDevices.RdmaDevices;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.memory.GetQuestions.TestTarget;
import io.zerohop.shuffle.transport.ucx.memory.TestRange;
import io.zerohop.shuffle.transport.ucx.memory.TransferMemory;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Locale;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Connects this executor to an owner: introduces it over the control channel, connects the workers
 * of UCX, tries what can be got, and says in one line of the log what is. Thread safe; owns
 * nothing, the connection is the caller's.
 */
final class PeerConnector {
  private static final Logger LOG = LoggerFactory.getLogger(PeerConnector.class);

  /** After so many owners, and none that worked, it is this node's fault; each costs its limit. */
  private static final int MAX_GPU_FAILURES = 3;

  /** How many owners the largest read is tried with: a thousand would be too many. */
  private static final int MAX_LARGE_READS = 4;

  private final UcxEngine engine;
  private final ControlChannel channel;
  private final TransferMemory memory;
  private final boolean gpu;
  private final Config conf;
  private final ContactListener contacts;
  private final Clock clock;

  /**
   * Lives of owners from whose GPU a get to this one has failed, and may have taken the connection
   * with it: then none is tried again.
   */
  private final Set<Long> gpuFailed = ConcurrentHashMap.newKeySet();

  /** How many owners the largest read was tried with. */
  private final AtomicInteger largeReads = new AtomicInteger();

  /** How often GPU memory could not be got. */
  private final AtomicInteger gpuFailures = new AtomicInteger();

  /** Whether that of any could: then who fails stands for itself only. */
  private volatile boolean gpuWorks;

  /**
   * @param memory what a test reads into
   * @param gpu whether there is a GPU
   */
  PeerConnector(
      final UcxEngine engine,
      final ControlChannel channel,
      final TransferMemory memory,
      final boolean gpu,
      final Config conf,
      final Self self) {
    this.engine = engine;
    this.channel = channel;
    this.memory = memory;
    this.gpu = gpu;
    this.conf = conf;
    this.contacts = self.contacts();
    this.clock = self.clock();
  }

  /** How long both attempts may take, and those who wait for the thread that makes them. */
  Duration limit() {
    return conf.connectTimeout().plus(conf.requestTimeout().multipliedBy(4));
  }

  /**
   * Connects to an owner; twice if UCX is what failed, and failed soon: when both ends connect to
   * each other at the same moment one of the connections may break. A silent peer has cost enough.
   *
   * @throws ExchangeException as {@link ControlChannel#connect} does
   * @throws UcxException if UCX cannot read its memory
   */
  UcxPeer connect(final BlockSource source) {
    final long begin = clock.nanos();
    try {
      return connectOnce(source);
    } catch (final UcxException e) {
      if (clock.since(begin) > conf.requestTimeout().toNanos() / 2
          || Thread.currentThread().isInterrupted()) {
        throw e;
      }
      LOG.info("connecting to executor {} again: {}", source.executorId(), e.getMessage());
      return connectOnce(source);
    }
  }

  private UcxPeer connectOnce(final BlockSource source) {
    final Location location = source.knownLocation();
    final String host = source.host();
    final String executorId = source.executorId();
    final ControlLink link = channel.connect(host, location.port(), conf.connectTimeout());
    final UcxPeer peer = new UcxPeer(executorId, link, clock);
    GpuTrial trial = null;
    boolean done = false;
    try {
      final int largest =
          largeReads.getAndUpdate(tried -> Math.min(tried + 1, MAX_LARGE_READS)) < MAX_LARGE_READS
              ? TestRange.BYTES
              : TestRange.FEWER_BYTES;
      trial = gpuTrial(location, largest);
      final SelfTest.Targets targets = introduce(peer, location, host, trial);
      final SelfTest test = test(peer, location, targets, trial, largest);
      learn(location, test);
      final GpuReach obstacle = trial.obstacle();
      final GpuReach reach = obstacle == null ? reach(test) : obstacle;
      peer.gets(conf.ucx().emulatedGets() || test.takesHost(), reach == GpuReach.DIRECT);
      final String how =
          (peer.takesHost() || peer.takesGpu() ? "read by UCX: " : "not read by UCX: ")
              + test.describe(peer.takesHost(), reach);
      LOG.info("executor {} at {}:{} is {}", executorId, host, location.port(), how);
      contacts.met(executorId, how, Link.UCX, Link.UCX.expected());
      done = true;
      return peer;
    } finally {
      final TestRange.Destination tried = trial == null ? null : trial.to();
      if (tried != null) {
        tried.release();
      }
      if (!done) {
        peer.breakOff("it could not be connected");
      }
    }
  }

  private SelfTest test(
      final UcxPeer peer,
      final Location owner,
      final SelfTest.Targets targets,
      final GpuTrial trial,
      final int largest) {
    final TestRange.Destination to = memory.hostTest().destination(largest);
    try {
      final TestReads reads =
          new TestReads(peer, owner.incarnation(), largest, conf.requestTimeout());
      return SelfTest.run(new SelfTest.Trial(reads, to, trial.to()), targets);
    } finally {
      to.release();
    }
  }

  private void learn(final Location owner, final SelfTest test) {
    if (test.gpu() == GetKind.FAILED) {
      gpuFailed.add(owner.incarnation());
      gpuFailures.incrementAndGet();
    } else if (test.gpu() != GetKind.NONE) {
      gpuWorks = true;
    }
  }

  /**
   * The memory of a trial of gets from GPU to GPU.
   *
   * @param to this GPU's memory; absent if none is tried
   * @param obstacle why not, then
   */
  private record GpuTrial(TestRange.@Nullable Destination to, @Nullable GpuReach obstacle) {}

  /** That there is none must not keep anybody from the rest. */
  private GpuTrial gpuTrial(final Location owner, final int largest) {
    if (!gpu) {
      return new GpuTrial(null, GpuReach.NO_GPU);
    }
    final TestRange range = memory.gpuTest();
    if (range == null) {
      return new GpuTrial(
          null, engine.reachesGpuMemory() ? GpuReach.NOT_ORDERED : GpuReach.NOT_HERE);
    }
    final boolean hopeless = !gpuWorks && gpuFailures.get() >= MAX_GPU_FAILURES;
    if (hopeless || gpuFailed.contains(owner.incarnation())) {
      return new GpuTrial(null, GpuReach.FAILED);
    }
    try {
      return new GpuTrial(range.destination(largest), null);
    } catch (final UcxException e) {
      LOG.debug("UCX cannot register GPU memory for a test", e);
      return new GpuTrial(null, GpuReach.NOT_REGISTERED);
    } catch (final ZerohopException e) {
      LOG.debug("no GPU memory for a test", e);
      return new GpuTrial(null, GpuReach.NO_ROOM);
    }
  }

  private GpuReach reach(final SelfTest test) {
    return switch (test.gpu()) {
      case FAILED -> GpuReach.FAILED;
      case NONE -> GpuReach.NOT_THERE;
      case ONE_SIDED, UNKNOWN, EMULATED ->
          conf.ucx().emulatedGets() || test.takesGpu() ? GpuReach.DIRECT : GpuReach.EMULATED;
    };
  }

  /** Tells who it is, learns who answers, and connects the workers. */
  private SelfTest.Targets introduce(
      final UcxPeer peer, final Location location, final String host, final GpuTrial trial) {
    final ByteBuffer answer =
        peer.hello(
            Questions.hello(new byte[0], trial.to() != null),
            location.incarnation(),
            conf.requestTimeout(),
            "does not introduce itself",
            "at " + host + ":" + location.port());
    final boolean rdma = answer.get() != 0 && engine.rdma();
    peer.endpoint(engine.connect(Wire.bytes(answer), peer::breakOff));
    return new SelfTest.Targets(rdma, TestTarget.read(answer), TestTarget.read(answer));
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
    private static final Logger LOG = LoggerFactory.getLogger(SelfTest.class);

    /**
     * The reads to try and their destinations, which stay the caller's; there is none in GPU memory
     * if that is not tried.
     */
    record Trial(
        TestReads reads, TestRange.Destination host, TestRange.@Nullable Destination gpu) {}

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
     * Reads the peer's test range, and that in GPU memory if both have one; what becomes of the
     * latter keeps nobody from the rest.
     *
     * @throws UcxException if the former does not work in time
     */
    static SelfTest run(final Trial trial, final Targets targets) {
      final TestReads reads = trial.reads();
      try {
        final GetKind host = GetKind.of(reads, targets.host(), trial.host());
        final double hostRate = rate(reads, targets.host(), trial.host());
        final TestRange.Destination onGpu = trial.gpu();
        if (onGpu == null) {
          return new SelfTest(targets.rdma(), host, hostRate, GetKind.NONE, 0);
        }
        final GetKind gpu = gpuGets(reads, targets.gpu(), onGpu);
        final double gpuRate =
            gpu == GetKind.NONE || gpu == GetKind.FAILED ? 0 : rate(reads, targets.gpu(), onGpu);
        return new SelfTest(targets.rdma(), host, hostRate, gpu, gpuRate);
      } catch (final TimeoutException e) {
        throw new UcxException(
            Message.of(
                    "a test read of an executor's memory did not end within "
                        + reads.limit().toMillis()
                        + " ms")
                .at("executor " + reads.peer()),
            e);
      } catch (final ExecutionException e) {
        throw new UcxException(
            Message.of("a test read of an executor's memory failed")
                .at("executor " + reads.peer())
                .because(Objects.requireNonNullElse(e.getCause(), e)),
            e);
      } catch (final InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new UcxException("interrupted while memory of a peer was read for a test", e);
      }
    }

    /** By the second read of the whole range: in the first one memory is mapped. */
    private static double rate(
        final TestReads reads, final TestTarget target, final TestRange.Destination to)
        throws ExecutionException, TimeoutException, InterruptedException {
      final long begin = reads.clock().nanos();
      reads.get(target, to, reads.largest());
      return 1e9 * reads.largest() / Math.max(1, reads.clock().since(begin));
    }

    private static GetKind gpuGets(
        final TestReads reads, final TestTarget target, final TestRange.Destination to)
        throws InterruptedException {
      try {
        return GetKind.of(reads, target, to);
      } catch (final ExecutionException | TimeoutException e) {
        ShuffleCode.GPU_GET_FAILED
            .says("a test read of an executor's GPU memory failed; its GPU blocks are sent")
            .at("executor " + reads.peer())
            .because(e)
            .warn(LOG);
        return GetKind.FAILED;
      }
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
