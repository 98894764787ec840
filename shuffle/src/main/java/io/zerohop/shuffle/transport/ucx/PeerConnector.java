package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.transport.ContactListener;
import io.zerohop.shuffle.transport.ControlChannel;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.shuffle.transport.Self;
import io.zerohop.shuffle.transport.remote.Wire;
import io.zerohop.shuffle.transport.remote.Wire.Questions;
import io.zerohop.shuffle.transport.ucx.TestReads.GetKind;
import io.zerohop.shuffle.transport.ucx.TestReads.GpuReach;
import io.zerohop.shuffle.transport.ucx.TestReads.SelfTest;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.memory.GetQuestions.TestTarget;
import io.zerohop.shuffle.transport.ucx.memory.TestRange;
import io.zerohop.shuffle.transport.ucx.memory.TransferMemory;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
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
      return reads.run(targets, to, trial.to());
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
}
