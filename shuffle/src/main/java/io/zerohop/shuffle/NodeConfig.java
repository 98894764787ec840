package io.zerohop.shuffle;

import io.zerohop.device.Topology;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.fetch.FetchSettings;
import io.zerohop.shuffle.pool.PoolSettings;
import io.zerohop.shuffle.spill.ColdStorage;
import io.zerohop.shuffle.spill.SpillSettings;
import io.zerohop.shuffle.transport.ContactListener;
import io.zerohop.shuffle.transport.ControlChannel;
import io.zerohop.shuffle.transport.ControlService;
import io.zerohop.shuffle.transport.remote.SendSettings;
import io.zerohop.shuffle.transport.remote.carrier.CarrierStarter;
import io.zerohop.shuffle.transport.ucx.engine.UcxSettings;
import io.zerohop.shuffle.transport.ucx.engine.UcxStarter;
import java.time.Duration;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;

/**
 * The configuration of a {@link ShuffleNode}: settings of the whole node, and of each of its parts.
 * Immutable and thread safe.
 */
public final class NodeConfig {
  private final String appId;
  private final String executorId;
  private final java.nio.file.Path socketBase;
  private final byte[] secret;
  private final String nodeId;
  private final Topology.View view;
  private final Topology topology;
  private final boolean neighbours;
  private final Set<Path> paths;
  private final boolean checksum;
  private final boolean asyncCommit;
  private final long receiveBufferBytes;
  private final Duration connectLimit;
  private final Duration requestLimit;
  private final Duration deviceLimit;
  private final PoolSettings hostPool;
  private final PoolSettings devicePool;
  private final FetchSettings fetch;
  private final SpillSettings spill;
  private final UcxSettings ucx;
  private final SendSettings sending;
  private final ContactListener contacts;
  private final Clock clock;

  private NodeConfig(final Builder builder) {
    appId = given(builder.appId, "appId");
    executorId = given(builder.executorId, "executorId");
    socketBase = builder.socketBase;
    secret = given(builder.secret, "secret").clone();
    nodeId = given(builder.nodeId, "nodeId");
    topology = builder.topology;
    view =
        builder.gpu.isEmpty()
            ? new Topology.View(executorId, "", "")
            : new Topology.View(executorId, builder.gpu, topology.fingerprint());
    paths = Set.copyOf(given(builder.paths, "paths"));
    neighbours = given(builder.neighbours, "neighbours") && paths.contains(Path.PEER);
    checksum = given(builder.checksum, "checksum");
    asyncCommit = given(builder.asyncCommit, "asyncCommit");
    receiveBufferBytes = positive(builder.receiveBufferBytes, "receiveBufferBytes");
    connectLimit = given(builder.connectLimit, "connectLimit");
    requestLimit = given(builder.requestLimit, "requestLimit");
    deviceLimit = given(builder.deviceLimit, "deviceLimit");
    clock = given(builder.clock, "clock");
    final Duration keepEmpty = given(builder.keepEmpty, "keepEmpty");
    hostPool =
        new PoolSettings(
            positive(builder.poolBytes, "poolBytes"),
            positive(builder.segmentBytes, "segmentBytes"),
            keepEmpty,
            clock);
    devicePool =
        builder.devicePoolBytes == null
            ? null
            : new PoolSettings(
                positive(builder.devicePoolBytes, "devicePoolBytes"),
                positive(builder.deviceSegmentBytes, "deviceSegmentBytes"),
                keepEmpty,
                clock);
    fetch =
        new FetchSettings(
            checksum,
            connectLimit,
            requestLimit,
            given(builder.stagedLimit, "stagedLimit"),
            deviceLimit,
            Math.toIntExact(positive(builder.windowBlocks, "windowBlocks")),
            positive(builder.windowBytes, "windowBytes"),
            positive(builder.deviceWindowBytes, "deviceWindowBytes"),
            clock);
    spill =
        new SpillSettings(
            given(builder.spillStart, "spillStart"),
            given(builder.spillIdle, "spillIdle"),
            builder.coldStorage,
            deviceLimit,
            clock);
    ucx =
        new UcxSettings(
            executorId,
            builder.emulatedGets,
            builder.controlChannels == null ? builder.ucx : given(builder.ucx, "ucx"),
            paths.contains(Path.UCX) ? builder.controlChannels : null,
            receiveBufferBytes,
            connectLimit,
            requestLimit,
            deviceLimit,
            given(builder.ucxIdle, "ucxIdle"),
            builder.contacts,
            clock);
    sending =
        new SendSettings(
            executorId,
            paths.contains(Path.SENT) ? builder.carrier : null,
            receiveBufferBytes,
            connectLimit,
            requestLimit,
            deviceLimit,
            builder.ucxIdle,
            builder.contacts,
            clock);
    contacts = builder.contacts;
  }

  public static Builder builder() {
    return new Builder();
  }

  /** The application; names the socket folder. */
  public String appId() {
    return appId;
  }

  /** This executor; names the socket and appears in messages. */
  public String executorId() {
    return executorId;
  }

  /** Folder under which each application has its own; null for the default. */
  public java.nio.file.Path socketBase() {
    return socketBase;
  }

  /** The application's secret, a fresh copy. */
  public byte[] secret() {
    return secret.clone();
  }

  /** What the user calls this node, to tell it from others with the same kernel; may be empty. */
  public String nodeId() {
    return nodeId;
  }

  /** What peers are told of this executor's GPU; empty where it has none. */
  public Topology.View view() {
    return view;
  }

  /** Returns the links between this node's GPUs, as this executor sees them. */
  public Topology topology() {
    return topology;
  }

  /** Whether to connect to this node's other executors ahead of the first reader. */
  public boolean neighbours() {
    return neighbours;
  }

  /** Ways that blocks may take. */
  public Set<Path> paths() {
    return paths;
  }

  /** Whether block bytes are checksummed when written and verified at each read. */
  public boolean checksum() {
    return checksum;
  }

  /** Whether map outputs on the GPU are published before their copies have ended. */
  public boolean asyncCommit() {
    return asyncCommit;
  }

  /** The maximum bytes of all fetchers' staged blocks together. */
  public long receiveBufferBytes() {
    return receiveBufferBytes;
  }

  /** Longest time to connect to a peer. */
  public Duration connectLimit() {
    return connectLimit;
  }

  /** Longest time to wait for one answer of a peer, or for a map output to become ready. */
  public Duration requestLimit() {
    return requestLimit;
  }

  /** Longest time for copies on the GPU, which queue behind what others do there. */
  public Duration deviceLimit() {
    return deviceLimit;
  }

  /** The pool in host memory, catalog included. */
  public PoolSettings hostPool() {
    return hostPool;
  }

  /** The pool in GPU memory; null where there is none. */
  public PoolSettings devicePool() {
    return devicePool;
  }

  /** The limits of fetchers. */
  public FetchSettings fetchSettings() {
    return fetch;
  }

  /** When map outputs leave memory, and where to. */
  public SpillSettings spillSettings() {
    return spill;
  }

  /** How blocks come from other nodes. */
  public UcxSettings ucxSettings() {
    return ucx;
  }

  /** How blocks are sent from executor to executor. */
  public SendSettings sendSettings() {
    return sending;
  }

  /** The clock by which limits, periods and pauses are measured. */
  public Clock clock() {
    return clock;
  }

  /** Who hears of the executors that this one gets to know. */
  public ContactListener contacts() {
    return contacts;
  }

  private static <T> T given(final T value, final String name) {
    return Objects.requireNonNull(value, () -> name + " is not set");
  }

  private static long positive(final Number number, final String name) {
    final long value = given(number, name).longValue();
    if (value <= 0) {
      throw new IllegalArgumentException(name + " must be positive, not " + value);
    }
    return value;
  }

  /**
   * Collects settings. None has a default here: what users set, and what holds if they do not, is
   * said in one place, above. Left out may be the folder of sockets, the GPU, the pool on the GPU,
   * cold storage, UCX with its control channels, what carries blocks that are sent, and who hears
   * of contacts.
   */
  public static final class Builder {
    private String appId;
    private String executorId;
    private java.nio.file.Path socketBase;
    private byte[] secret;
    private String gpu = "";
    private Topology topology = Topology.NONE;
    private Boolean neighbours;
    private Long poolBytes;
    private Long devicePoolBytes;
    private Long segmentBytes;
    private Duration keepEmpty;
    private Boolean checksum;
    private Set<Path> paths;
    private Duration connectLimit;
    private Duration requestLimit;
    private Duration stagedLimit;
    private Duration deviceLimit;
    private Integer windowBlocks;
    private Long windowBytes;
    private Long receiveBufferBytes;
    private Long deviceWindowBytes;
    private Long deviceSegmentBytes;
    private Boolean asyncCommit;
    private Double spillStart;
    private Duration spillIdle;
    private ColdStorage coldStorage;
    private String nodeId;
    private boolean emulatedGets;
    private Duration ucxIdle;
    private UcxStarter ucx;
    private Function<ControlService, ControlChannel> controlChannels;
    private CarrierStarter carrier;
    private Clock clock;

    private ContactListener contacts = ContactListener.NONE;

    private Builder() {}

    public Builder appId(final String value) {
      appId = value;
      return this;
    }

    public Builder executorId(final String value) {
      executorId = value;
      return this;
    }

    public Builder socketBase(final java.nio.file.Path value) {
      socketBase = value;
      return this;
    }

    public Builder secret(final byte[] value) {
      secret = value.clone();
      return this;
    }

    /**
     * Names this executor's GPU.
     *
     * @param uuid of the GPU
     * @param links between it and the others of the node
     */
    public Builder gpu(final String uuid, final Topology links) {
      gpu = uuid;
      topology = links;
      return this;
    }

    public Builder neighbours(final boolean value) {
      neighbours = value;
      return this;
    }

    public Builder devicePoolBytes(final long value) {
      devicePoolBytes = value;
      return this;
    }

    public Builder poolBytes(final long value) {
      poolBytes = value;
      return this;
    }

    public Builder segmentBytes(final long value) {
      segmentBytes = value;
      return this;
    }

    public Builder keepEmpty(final Duration value) {
      keepEmpty = value;
      return this;
    }

    public Builder checksum(final boolean value) {
      checksum = value;
      return this;
    }

    public Builder paths(final Set<Path> value) {
      paths = Set.copyOf(value);
      return this;
    }

    public Builder connectLimit(final Duration value) {
      connectLimit = value;
      return this;
    }

    public Builder requestLimit(final Duration value) {
      requestLimit = value;
      return this;
    }

    public Builder stagedLimit(final Duration value) {
      stagedLimit = value;
      return this;
    }

    public Builder deviceLimit(final Duration value) {
      deviceLimit = value;
      return this;
    }

    public Builder windowBlocks(final int value) {
      windowBlocks = value;
      return this;
    }

    public Builder windowBytes(final long value) {
      windowBytes = value;
      return this;
    }

    public Builder asyncCommit(final boolean value) {
      asyncCommit = value;
      return this;
    }

    public Builder receiveBufferBytes(final long value) {
      receiveBufferBytes = value;
      return this;
    }

    public Builder deviceWindowBytes(final long value) {
      deviceWindowBytes = value;
      return this;
    }

    public Builder deviceSegmentBytes(final long value) {
      deviceSegmentBytes = value;
      return this;
    }

    public Builder spillStart(final double value) {
      spillStart = value;
      return this;
    }

    public Builder spillIdle(final Duration value) {
      spillIdle = value;
      return this;
    }

    public Builder nodeId(final String value) {
      nodeId = value;
      return this;
    }

    /** Whether gets by UCX are taken that are emulated, which tests want; false if not said. */
    public Builder emulatedGets(final boolean value) {
      emulatedGets = value;
      return this;
    }

    public Builder ucxIdle(final Duration value) {
      ucxIdle = value;
      return this;
    }

    public Builder ucx(final UcxStarter value) {
      ucx = value;
      return this;
    }

    /** What carries blocks that are sent; null if nothing does. */
    public Builder carrier(final CarrierStarter value) {
      carrier = value;
      return this;
    }

    public Builder controlChannels(final Function<ControlService, ControlChannel> value) {
      controlChannels = value;
      return this;
    }

    public Builder contacts(final ContactListener value) {
      contacts = value;
      return this;
    }

    public Builder clock(final Clock value) {
      clock = value;
      return this;
    }

    public Builder coldStorage(final ColdStorage value) {
      coldStorage = value;
      return this;
    }

    public NodeConfig build() {
      return new NodeConfig(this);
    }
  }
}
