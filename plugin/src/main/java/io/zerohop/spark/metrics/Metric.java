package io.zerohop.spark.metrics;

import io.zerohop.shuffle.block.Path;

/**
 * The metrics of source {@code zerohop}, with their documentation in docs/metrics.md. They are what
 * they are since the executor's start, or now; nothing is reset.
 */
public enum Metric {
  LOCAL_BYTES(
      "local.bytes", Type.COUNTER, "bytes", Owner.ANY, Doc.READ + "the executor's own memory"),
  PEER_BYTES(
      "peer.bytes",
      Type.COUNTER,
      "bytes",
      Owner.ANY,
      Doc.READ + "the memory of other executors of the node, or over NVLink"),
  PEER_HOST_BYTES(
      "peer.host.bytes", Type.COUNTER, "bytes", Owner.ANY, Doc.OF_PEER + "that lay in host memory"),
  PEER_NVLINK_BYTES(
      "peer.nvlink.bytes",
      Type.COUNTER,
      "bytes",
      Owner.ANY,
      Doc.OF_PEER + "that came from another GPU over NVLink"),
  PEER_PCIE_BYTES(
      "peer.pcie.bytes",
      Type.COUNTER,
      "bytes",
      Owner.ANY,
      Doc.OF_PEER + "that came from another GPU over the PCI bus"),
  PEER_GPU_BYTES(
      "peer.gpu.bytes",
      Type.COUNTER,
      "bytes",
      Owner.ANY,
      Doc.OF_PEER + "that lay on the GPU that both executors use"),
  UCX_BYTES("ucx.bytes", Type.COUNTER, "bytes", Owner.ANY, "Read from other nodes by UCX"),
  SENT_BYTES(
      "sent.bytes",
      Type.COUNTER,
      "bytes",
      Owner.ANY,
      "Sent here by executors of other nodes, over Spark's connections"),
  STAGED_BYTES(
      "staged.bytes", Type.COUNTER, "bytes", Owner.ANY, "Read by Spark's block transfer service"),
  LOCAL_BLOCKS("local.blocks", Type.COUNTER, "blocks", Owner.ANY, Doc.BLOCKS + "`local.bytes`"),
  PEER_BLOCKS("peer.blocks", Type.COUNTER, "blocks", Owner.ANY, Doc.BLOCKS + "`peer.bytes`"),
  UCX_BLOCKS("ucx.blocks", Type.COUNTER, "blocks", Owner.ANY, Doc.BLOCKS + "`ucx.bytes`"),
  SENT_BLOCKS("sent.blocks", Type.COUNTER, "blocks", Owner.ANY, Doc.BLOCKS + "`sent.bytes`"),
  STAGED_BLOCKS("staged.blocks", Type.COUNTER, "blocks", Owner.ANY, Doc.BLOCKS + "`staged.bytes`"),
  FETCH_WAIT(
      "fetch.wait.nanos", Type.COUNTER, "ns", Owner.ANY, "Time that tasks waited for blocks"),
  FETCH_WAITS(
      "fetch.waits",
      Type.COUNTER,
      "waits",
      Owner.ANY,
      "Times that a task asked for its next window of blocks"),
  FETCH_WAIT_MEDIAN(
      "fetch.wait.p50.nanos", Type.GAUGE, "ns", Owner.ANY, Doc.WAIT + "median" + Doc.LATELY),
  FETCH_WAIT_P99(
      "fetch.wait.p99.nanos",
      Type.GAUGE,
      "ns",
      Owner.ANY,
      Doc.WAIT + "99th percentile" + Doc.LATELY),
  FILES_BYTES(
      "files.bytes",
      Type.GAUGE,
      "bytes",
      Owner.ANY,
      "Map outputs in files, in Spark's local directories"),
  SHARED_BLOCKS(
      "staged.shared.blocks",
      Type.TOTAL,
      "blocks",
      Owner.ANY,
      "Staged blocks that a reader got from a transfer that another reader had asked for"),

  POOL_LIMIT("pool.limit.bytes", Type.GAUGE, "bytes", Owner.MEMORY, "Limit of all pools"),
  POOL_RESERVED("pool.reserved.bytes", Type.GAUGE, "bytes", Owner.MEMORY, "Segments of all pools"),
  POOL_USED(
      "pool.used.bytes",
      Type.GAUGE,
      "bytes",
      Owner.MEMORY,
      "Blocks in all pools, and blocks of ended shuffles that somebody still reads"),
  POOL_SEGMENTS("pool.segments", Type.GAUGE, "segments", Owner.MEMORY, "Segments of all pools"),
  HOST_LIMIT(
      "pool.host.limit.bytes", Type.GAUGE, "bytes", Owner.MEMORY, Doc.LIMIT + "shared memory"),
  HOST_USED("pool.host.used.bytes", Type.GAUGE, "bytes", Owner.MEMORY, Doc.USED + "shared memory"),
  HOST_PEAK("pool.host.peak.bytes", Type.TOTAL, "bytes", Owner.MEMORY, Doc.PEAK),
  FILES_OUTPUTS(
      "spill.files.outputs",
      Type.TOTAL,
      "map outputs",
      Owner.MEMORY,
      "Moved from shared memory to files since nobody used them"),
  FILES_SPILLED("spill.files.bytes", Type.TOTAL, "bytes", Owner.MEMORY, Doc.THEIR_BYTES),
  FILES_FINISHED("spill.files.finished.bytes", Type.TOTAL, "bytes", Owner.MEMORY, Doc.OF_FINISHED),
  FILES_NANOS("spill.files.nanos", Type.TOTAL, "ns", Owner.MEMORY, Doc.THEIR_TIME),
  FILES_FAILURES("spill.files.failures", Type.TOTAL, "times", Owner.MEMORY, Doc.FAILURES),
  RECEIVE_BUFFERS(
      "receive.buffers",
      "landing.slabs",
      Type.GAUGE,
      "buffers",
      Owner.MEMORY,
      "Receive buffers in use for blocks from and to other nodes"),
  SENDING_BYTES(
      "sending.bytes",
      Type.GAUGE,
      "bytes",
      Owner.MEMORY,
      "Blocks that are being sent to executors of other nodes, over Spark's connections"),
  SAVED_BYTES(
      "sent.saved.bytes",
      Type.TOTAL,
      "bytes",
      Owner.MEMORY,
      "Bytes of sent blocks that compression has kept from the network"),
  REMOTE_SHARED_BLOCKS(
      "remote.shared.blocks",
      Type.TOTAL,
      "blocks",
      Owner.MEMORY,
      "Got or sent blocks that a reader received from a transfer that another reader had requested"),
  RECEIVE_WAIT(
      "receive.wait.nanos",
      "landing.wait.nanos",
      Type.TOTAL,
      "ns",
      Owner.MEMORY,
      "Time that readers waited for receive buffers"),
  LEASES_OPEN(
      "leases.open",
      Type.GAUGE,
      "leases",
      Owner.MEMORY,
      "Windows of blocks that are being read, by readers here and from here by other nodes"),
  PEERS(
      "peers",
      Type.GAUGE,
      "executors",
      Owner.MEMORY,
      "Executors of the node whose memory can be read in place"),
  REMOTE_OWNERS(
      "remote.owners",
      Type.GAUGE,
      "executors",
      Owner.MEMORY,
      "Executors of other nodes that this one is connected to, to read their blocks"),
  REMOTE_READERS(
      "remote.readers",
      Type.GAUGE,
      "executors",
      Owner.MEMORY,
      "Executors of other nodes that are connected to this one, to read its blocks"),
  UNAUTHENTICATED(
      "connections.unauthenticated",
      "strangers",
      Type.TOTAL,
      "connections",
      Owner.MEMORY,
      "Refused, or ended before they had proved to belong to the application"),
  CONTROL_PORT(
      "control.port", Type.GAUGE, "port", Owner.MEMORY, "Port for other nodes; 0 without UCX"),

  DEVICE_LIMIT("pool.device.limit.bytes", Type.GAUGE, "bytes", Owner.GPU, Doc.LIMIT + "GPU memory"),
  DEVICE_USED("pool.device.used.bytes", Type.GAUGE, "bytes", Owner.GPU, Doc.USED + "GPU memory"),
  DEVICE_PEAK(
      "pool.device.peak.bytes",
      Type.TOTAL,
      "bytes",
      Owner.GPU,
      Doc.PEAK + ", with those in borrowed GPU memory"),
  DEVICE_OVERFLOW(
      "pool.device.overflow.bytes",
      Type.TOTAL,
      "bytes",
      Owner.GPU,
      "Found no room in GPU memory and went to shared memory"),
  DEVICE_SHRUNK(
      "pool.device.shrunk.bytes",
      Type.TOTAL,
      "bytes",
      Owner.GPU,
      "GPU memory that was given back since RAPIDS had run out of it"),
  DEVICE_BORROWED(
      "pool.device.borrowed.bytes",
      Type.GAUGE,
      "bytes",
      Owner.GPU,
      "GPU memory that other executors of the node lend to this one"),
  DEVICE_BORROWED_PEAK(
      "pool.device.borrowed.peak.bytes",
      Type.TOTAL,
      "bytes",
      Owner.GPU,
      "Most of `pool.device.borrowed.bytes` so far"),
  DEVICE_BORROWED_WRITTEN(
      "pool.device.borrowed.written.bytes",
      Type.TOTAL,
      "bytes",
      Owner.GPU,
      "Found no room in the executor's own GPU memory and went to borrowed GPU memory"),
  DEVICE_LENT(
      "pool.device.lent.bytes",
      Type.GAUGE,
      "bytes",
      Owner.GPU,
      "GPU memory of this executor's pool that it lends to others of the node"),
  DEVICE_RECALLED(
      "pool.device.recalled.segments",
      Type.TOTAL,
      "segments",
      Owner.GPU,
      "Lent segments that this executor wanted back"),
  HOST_OUTPUTS(
      "spill.host.outputs",
      Type.TOTAL,
      "map outputs",
      Owner.GPU,
      "Moved from GPU memory to shared memory since nobody used them"),
  HOST_SPILLED("spill.host.bytes", Type.TOTAL, "bytes", Owner.GPU, Doc.THEIR_BYTES),
  HOST_FINISHED("spill.host.finished.bytes", Type.TOTAL, "bytes", Owner.GPU, Doc.OF_FINISHED),
  HOST_NANOS("spill.host.nanos", Type.TOTAL, "ns", Owner.GPU, Doc.THEIR_TIME),
  HOST_FAILURES("spill.host.failures", Type.TOTAL, "times", Owner.GPU, Doc.FAILURES),
  COMMITS_ASYNC(
      "commits.async",
      Type.TOTAL,
      "map outputs",
      Owner.GPU,
      "Published before their copies had ended"),
  COMMITS_PENDING(
      "commits.pending", Type.GAUGE, "map outputs", Owner.GPU, "Published, with copies under way"),
  FETCH_UNREADY(
      "fetch.unready",
      Type.TOTAL,
      "map outputs",
      Owner.GPU,
      "Found by readers here before their bytes were there");

  /** The kind of a value. */
  public enum Type {
    /** A counter, which only rises. */
    COUNTER,
    /** A gauge that only rises. */
    TOTAL,
    /** A gauge. */
    GAUGE
  }

  /** The executors that have it. */
  public enum Owner {
    /** All. */
    ANY,
    /** Those that hold blocks in memory. */
    MEMORY,
    /** Those that hold blocks in GPU memory. */
    GPU
  }

  private final String key;
  private final String formerly;
  private final Type type;
  private final String unit;
  private final Owner owner;
  private final String doc;

  Metric(
      final String key, final Type type, final String unit, final Owner owner, final String doc) {
    this(key, "", type, unit, owner, doc);
  }

  Metric(
      final String key,
      final String formerly,
      final Type type,
      final String unit,
      final Owner owner,
      final String doc) {
    this.key = key;
    this.formerly = formerly;
    this.type = type;
    this.unit = unit;
    this.owner = owner;
    this.doc = doc;
  }

  /** Its name within the source. */
  public String key() {
    return key;
  }

  /** The name that it had in earlier releases and is found by as well; empty if it had no other. */
  public String formerly() {
    return formerly;
  }

  public Type type() {
    return type;
  }

  /** Returns the unit of its value. */
  public String unit() {
    return unit;
  }

  /** Returns the executors that have it. */
  public Owner owner() {
    return owner;
  }

  /** Returns what it counts or shows, without the unit. */
  public String doc() {
    return doc;
  }

  /** Bytes that came by a path. */
  static Metric bytes(final Path path) {
    return valueOf(path.name() + "_BYTES");
  }

  /** Blocks that came by a path. */
  static Metric blocks(final Path path) {
    return valueOf(path.name() + "_BLOCKS");
  }

  /** The sum of several reports. */
  private static final class Doc {
    static final String READ = "Read in place from ";
    static final String OF_PEER = "The part of `peer.bytes` ";
    static final String BLOCKS = "Blocks of ";
    static final String WAIT = "Time until a task had its next window of blocks, ";
    static final String LATELY = " of about the last five minutes";
    static final String LIMIT = "Limit of the pool in ";
    static final String USED = "Blocks in the pool in ";
    static final String THEIR_BYTES = "Their bytes";
    static final String OF_FINISHED =
        "The part of them that belonged to shuffles of finished queries";
    static final String THEIR_TIME = "Time that moving them took";
    static final String PEAK = "Largest size of the blocks in this pool so far";
    static final String FAILURES = "Map outputs that could not be moved";
  }
}
