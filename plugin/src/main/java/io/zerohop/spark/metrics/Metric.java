package io.zerohop.spark.metrics;

import static io.zerohop.spark.metrics.Metric.Owner.ANY;
import static io.zerohop.spark.metrics.Metric.Owner.GPU;
import static io.zerohop.spark.metrics.Metric.Owner.MEMORY;
import static io.zerohop.spark.metrics.Metric.Type.COUNTER;
import static io.zerohop.spark.metrics.Metric.Type.GAUGE;
import static io.zerohop.spark.metrics.Metric.Type.TOTAL;

import io.zerohop.shuffle.block.BlockPath;

/**
 * The metrics of source {@code zerohop}, with their documentation in docs/metrics.md. They are what
 * they are since the executor's start, or now; nothing is reset.
 */
public enum Metric {
  LOCAL_BYTES("local.bytes", COUNTER, ANY, Doc.READ + "the executor's own memory"),
  PEER_BYTES(
      "peer.bytes",
      COUNTER,
      ANY,
      Doc.READ + "the memory of other executors of the node, or over NVLink"),
  PEER_HOST_BYTES("peer.host.bytes", COUNTER, ANY, Doc.OF_PEER + "that lay in host memory"),
  PEER_NVLINK_BYTES(
      "peer.nvlink.bytes", COUNTER, ANY, Doc.OF_PEER + "that came from another GPU over NVLink"),
  PEER_PCIE_BYTES(
      "peer.pcie.bytes", COUNTER, ANY, Doc.OF_PEER + "that came from another GPU over the PCI bus"),
  PEER_GPU_BYTES(
      "peer.gpu.bytes", COUNTER, ANY, Doc.OF_PEER + "that lay on the GPU that both executors use"),
  UCX_BYTES("ucx.bytes", COUNTER, ANY, "Read from other nodes by UCX"),
  SENT_BYTES(
      "sent.bytes",
      COUNTER,
      ANY,
      "Sent here by executors of other nodes, over Spark's connections"),
  STAGED_BYTES("staged.bytes", COUNTER, ANY, "Read by Spark's block transfer service"),
  LOCAL_BLOCKS("local.blocks", COUNTER, ANY, Doc.BLOCKS + "`local.bytes`"),
  PEER_BLOCKS("peer.blocks", COUNTER, ANY, Doc.BLOCKS + "`peer.bytes`"),
  UCX_BLOCKS("ucx.blocks", COUNTER, ANY, Doc.BLOCKS + "`ucx.bytes`"),
  SENT_BLOCKS("sent.blocks", COUNTER, ANY, Doc.BLOCKS + "`sent.bytes`"),
  STAGED_BLOCKS("staged.blocks", COUNTER, ANY, Doc.BLOCKS + "`staged.bytes`"),
  FETCH_WAIT("fetch.wait.nanos", COUNTER, ANY, "Time that tasks waited for blocks"),
  FETCH_WAITS(
      "fetch.waits",
      "waits",
      COUNTER,
      ANY,
      "Times that a task asked for its next window of blocks"),
  FETCH_WAIT_MEDIAN("fetch.wait.p50.nanos", GAUGE, ANY, Doc.WAIT + "median" + Doc.LATELY),
  FETCH_WAIT_P99("fetch.wait.p99.nanos", GAUGE, ANY, Doc.WAIT + "99th percentile" + Doc.LATELY),
  FILES_BYTES("files.bytes", GAUGE, ANY, "Map outputs in files, in Spark's local directories"),
  SHARED_BLOCKS(
      "staged.shared.blocks",
      TOTAL,
      ANY,
      "Staged blocks that a reader got from a transfer that another reader had asked for"),

  POOL_LIMIT("pool.limit.bytes", GAUGE, MEMORY, "Limit of all pools"),
  POOL_RESERVED("pool.reserved.bytes", GAUGE, MEMORY, "Segments of all pools"),
  POOL_USED(
      "pool.used.bytes",
      GAUGE,
      MEMORY,
      "Blocks in all pools, and blocks of ended shuffles that somebody still reads"),
  POOL_SEGMENTS("pool.segments", GAUGE, MEMORY, "Segments of all pools"),
  HOST_LIMIT("pool.host.limit.bytes", GAUGE, MEMORY, Doc.LIMIT + "shared memory"),
  HOST_USED("pool.host.used.bytes", GAUGE, MEMORY, Doc.USED + "shared memory"),
  HOST_PEAK("pool.host.peak.bytes", TOTAL, MEMORY, Doc.PEAK),
  FILES_OUTPUTS(
      "spill.files.outputs",
      TOTAL,
      MEMORY,
      "Moved from shared memory to files since nobody used them"),
  FILES_SPILLED("spill.files.bytes", TOTAL, MEMORY, Doc.THEIR_BYTES),
  FILES_FINISHED("spill.files.finished.bytes", TOTAL, MEMORY, Doc.OF_FINISHED),
  FILES_NANOS("spill.files.nanos", TOTAL, MEMORY, Doc.THEIR_TIME),
  FILES_FAILURES("spill.files.failures", TOTAL, MEMORY, Doc.FAILURES),
  RECEIVE_BUFFERS(
      "receive.buffers",
      "buffers",
      GAUGE,
      MEMORY,
      "Receive buffers in use for blocks from and to other nodes"),
  SENDING_BYTES(
      "sending.bytes",
      GAUGE,
      MEMORY,
      "Blocks that are being sent to executors of other nodes, over Spark's connections"),
  SAVED_BYTES(
      "sent.saved.bytes",
      TOTAL,
      MEMORY,
      "Bytes of sent blocks that compression has kept from the network"),
  REMOTE_SHARED_BLOCKS(
      "remote.shared.blocks",
      TOTAL,
      MEMORY,
      "Got or sent blocks that a reader received from a transfer that another reader had"
          + " requested"),
  RECEIVE_WAIT("receive.wait.nanos", TOTAL, MEMORY, "Time that readers waited for receive buffers"),
  LEASES_OPEN(
      "leases.open",
      "leases",
      GAUGE,
      MEMORY,
      "Windows of blocks that are being read, by readers here and from here by other nodes"),
  PEERS(
      "peers",
      "executors",
      GAUGE,
      MEMORY,
      "Executors of the node whose memory can be read in place"),
  REMOTE_OWNERS(
      "remote.owners",
      "executors",
      GAUGE,
      MEMORY,
      "Executors of other nodes that this one is connected to, to read their blocks"),
  REMOTE_READERS(
      "remote.readers",
      "executors",
      GAUGE,
      MEMORY,
      "Executors of other nodes that are connected to this one, to read its blocks"),
  UNAUTHENTICATED(
      "connections.unauthenticated",
      "connections",
      TOTAL,
      MEMORY,
      "Refused, or ended before they had proved to belong to the application"),
  KEEPER("keeper", "keepers", GAUGE, Owner.KEEPER, Doc.OF_KEEPER + "1 if one is connected"),
  KEEPER_HELD(
      "keeper.held.bytes",
      GAUGE,
      Owner.KEEPER,
      Doc.OF_KEEPER + "memory that it holds, of executors that live and that have ended"),
  KEEPER_LEFT(
      "keeper.left.bytes",
      GAUGE,
      Owner.KEEPER,
      Doc.OF_KEEPER + "memory that executors have left which have ended"),
  KEEPER_LEFT_OUTPUTS(
      "keeper.left.outputs", GAUGE, Owner.KEEPER, Doc.OF_KEEPER + "in `keeper.left.bytes`"),
  KEEPER_ADOPTED(
      "keeper.adopted.outputs", GAUGE, Owner.KEEPER, Doc.OF_KEEPER + "taken over since its start"),
  KEEPER_DROPPED(
      "keeper.dropped.outputs",
      GAUGE,
      Owner.KEEPER,
      Doc.OF_KEEPER + "of these, those that were dropped"),
  KEEPER_REFUSED(
      "keeper.refused.segments",
      GAUGE,
      Owner.KEEPER,
      Doc.OF_KEEPER + "beyond `spark.zerohop.keeper.size` since its start"),
  KEEPER_SENT_BLOCKS(
      "keeper.sent.blocks",
      GAUGE,
      Owner.KEEPER,
      Doc.OF_KEEPER + "sent to executors of other nodes, and out of files"),
  KEEPER_SENT(
      "keeper.sent.bytes",
      GAUGE,
      Owner.KEEPER,
      Doc.OF_KEEPER + "sent to executors of other nodes, and out of files"),
  KEEPER_FILES(
      "keeper.files.bytes",
      GAUGE,
      Owner.KEEPER,
      Doc.OF_KEEPER + "files of map outputs of executors that have ended"),
  KEEPER_FILES_OUTPUTS(
      "keeper.files.outputs", GAUGE, Owner.KEEPER, Doc.OF_KEEPER + "in `keeper.files.bytes`"),
  CONTROL_PORT("control.port", "port", GAUGE, MEMORY, "Port for other nodes; 0 without UCX"),

  DEVICE_LIMIT("pool.device.limit.bytes", GAUGE, GPU, Doc.LIMIT + "GPU memory"),
  DEVICE_USED("pool.device.used.bytes", GAUGE, GPU, Doc.USED + "GPU memory"),
  DEVICE_PEAK(
      "pool.device.peak.bytes", TOTAL, GPU, Doc.PEAK + ", with those in borrowed GPU memory"),
  DEVICE_OVERFLOW(
      "pool.device.overflow.bytes",
      TOTAL,
      GPU,
      "Found no room in GPU memory and went to shared memory"),
  DEVICE_SHRUNK(
      "pool.device.shrunk.bytes",
      TOTAL,
      GPU,
      "GPU memory that was given back since RAPIDS had run out of it"),
  DEVICE_BORROWED(
      "pool.device.borrowed.bytes",
      GAUGE,
      GPU,
      "GPU memory that other executors of the node lend to this one"),
  DEVICE_BORROWED_PEAK(
      "pool.device.borrowed.peak.bytes", TOTAL, GPU, "Most of `pool.device.borrowed.bytes` so far"),
  DEVICE_BORROWED_WRITTEN(
      "pool.device.borrowed.written.bytes",
      TOTAL,
      GPU,
      "Found no room in the executor's own GPU memory and went to borrowed GPU memory"),
  DEVICE_LENT(
      "pool.device.lent.bytes",
      GAUGE,
      GPU,
      "GPU memory of this executor's pool that it lends to others of the node"),
  DEVICE_RECALLED(
      "pool.device.recalled.segments", TOTAL, GPU, "Lent segments that this executor wanted back"),
  HOST_OUTPUTS(
      "spill.host.outputs",
      TOTAL,
      GPU,
      "Moved from GPU memory to shared memory since nobody used them"),
  HOST_SPILLED("spill.host.bytes", TOTAL, GPU, Doc.THEIR_BYTES),
  HOST_FINISHED("spill.host.finished.bytes", TOTAL, GPU, Doc.OF_FINISHED),
  HOST_NANOS("spill.host.nanos", TOTAL, GPU, Doc.THEIR_TIME),
  HOST_FAILURES("spill.host.failures", TOTAL, GPU, Doc.FAILURES),
  COMMITS_ASYNC(
      "commits.async", "map outputs", TOTAL, GPU, "Published before their copies had ended"),
  COMMITS_PENDING("commits.pending", "map outputs", GAUGE, GPU, "Published, with copies under way"),
  FETCH_UNREADY(
      "fetch.unready",
      "map outputs",
      TOTAL,
      GPU,
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
    /** Those of an application with {@code spark.zerohop.keeper}. */
    KEEPER,
    /** Those that hold blocks in GPU memory. */
    GPU
  }

  private final String key;
  private final String unit;
  private final Type type;
  private final Owner owner;
  private final String doc;

  /** The unit follows from the last word of the key. */
  Metric(final String key, final Type type, final Owner owner, final String doc) {
    this(key, unitOf(key.substring(key.lastIndexOf('.') + 1)), type, owner, doc);
  }

  Metric(
      final String key, final String unit, final Type type, final Owner owner, final String doc) {
    this.key = key;
    this.unit = unit;
    this.type = type;
    this.owner = owner;
    this.doc = doc;
  }

  private static String unitOf(final String counted) {
    return switch (counted) {
      case "bytes", "blocks", "segments" -> counted;
      case "nanos" -> "ns";
      case "outputs" -> "map outputs";
      case "failures" -> "times";
      default -> throw new IllegalArgumentException(counted);
    };
  }

  /** Its name within the source. */
  public String key() {
    return key;
  }

  /** The name that it had in earlier releases and is found by as well; empty if it had no other. */
  public String formerly() {
    return switch (this) {
      case RECEIVE_BUFFERS -> "landing.slabs";
      case RECEIVE_WAIT -> "landing.wait.nanos";
      case UNAUTHENTICATED -> "strangers";
      default -> "";
    };
  }

  public Type type() {
    return type;
  }

  public String unit() {
    return unit;
  }

  public Owner owner() {
    return owner;
  }

  /** Returns what it counts or shows, without the unit. */
  public String doc() {
    return doc;
  }

  /** The metric of a path, pool or place, which its name begins with. */
  static Metric of(final String what, final String counted) {
    return valueOf(what + "_" + counted);
  }

  static Metric bytes(final BlockPath path) {
    return of(path.name(), "BYTES");
  }

  static Metric blocks(final BlockPath path) {
    return of(path.name(), "BLOCKS");
  }

  /** Parts of texts that several metrics have. */
  private static final class Doc {
    static final String READ = "Read in place from ";
    static final String OF_PEER = "The part of `peer.bytes` ";
    static final String OF_KEEPER = "The keeper of the node: ";
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
