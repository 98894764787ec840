package io.zerohop.spark.rapids.api;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/**
 * Every class and method of RAPIDS that is bound by name, because only RAPIDS' own class loader
 * sees it. This list is what the binding code binds by, what {@link RapidsProbe} looks for before
 * anything is bound, and what tests hold against the releases of docs/compatibility.md.
 */
public enum RapidsMember {
  USES_GPU_SHUFFLE(RapidsFeature.SHUFFLE, Kind.METHOD, Owner.DEPENDENCY, "useGPUShuffle", "()Z"),
  SPARK_TYPES(
      RapidsFeature.SHUFFLE,
      Kind.METHOD,
      Owner.DEPENDENCY,
      "sparkTypes",
      "()[Lorg/apache/spark/sql/types/DataType;"),
  EXCHANGE_METRICS(
      RapidsFeature.SHUFFLE,
      Kind.METHOD,
      Owner.DEPENDENCY,
      "metrics",
      "()Lscala/collection/immutable/Map;"),
  CONTIGUOUS_TABLE(
      RapidsFeature.SHUFFLE,
      Kind.METHOD,
      Owner.RAPIDS + "GpuPackedTableColumn",
      "getContiguousTable",
      "()Lai/rapids/cudf/ContiguousTable;"),
  TO_BATCH(
      RapidsFeature.SHUFFLE,
      Kind.STATIC,
      Owner.COLUMN,
      "from",
      "(Lai/rapids/cudf/Table;[Lorg/apache/spark/sql/types/DataType;)"
          + "Lorg/apache/spark/sql/vectorized/ColumnarBatch;"),
  PLAIN_COLUMN(
      RapidsFeature.SHUFFLE,
      Kind.METHOD,
      Owner.COLUMN,
      "getBase",
      "()Lai/rapids/cudf/ColumnVector;"),
  SCHEMA(
      RapidsFeature.SHUFFLE,
      Kind.STATIC,
      Owner.COLUMN,
      "from",
      "([Lorg/apache/spark/sql/types/DataType;)Lai/rapids/cudf/Schema;"),
  ACQUIRE_SEMAPHORE(
      RapidsFeature.SHUFFLE,
      Kind.OBJECT,
      Owner.RAPIDS + "GpuSemaphore$",
      "acquireIfNecessary",
      "(Lorg/apache/spark/TaskContext;)V"),
  RELEASE_SEMAPHORE(
      RapidsFeature.SHUFFLE,
      Kind.OBJECT,
      Owner.RAPIDS + "GpuSemaphore$",
      "releaseIfNecessary",
      "(Lorg/apache/spark/TaskContext;)V"),
  WITH_RETRY(
      RapidsFeature.SHUFFLE,
      Kind.OBJECT,
      Owner.RAPIDS + "RmmRapidsRetryIterator$",
      "withRetryNoSplit",
      "(Lscala/Function0;)Ljava/lang/Object;"),
  DEVICE_ID(
      RapidsFeature.SHUFFLE,
      Kind.OBJECT,
      Owner.RAPIDS + "GpuDeviceManager$",
      "getDeviceId",
      "()Lscala/Option;"),
  NEW_CONF(
      RapidsFeature.SHUFFLE,
      Kind.CONSTRUCTOR,
      Owner.RAPIDS + "RapidsConf",
      "<init>",
      "(Lorg/apache/spark/SparkConf;)V"),
  ENV_USES_GPU(
      RapidsFeature.SHUFFLE,
      Kind.OBJECT,
      Owner.ENV,
      "useGPUShuffle",
      "(Lcom/nvidia/spark/rapids/RapidsConf;)Z"),

  INIT_ENV(
      RapidsFeature.ENV_OF_CONF,
      Kind.OBJECT,
      Owner.ENV,
      "init",
      "(Lcom/nvidia/spark/rapids/RapidsConf;)V"),

  INIT_ENV_WITH_DISK(
      RapidsFeature.ENV_WITH_DISK,
      Kind.OBJECT,
      Owner.ENV,
      "init",
      "(Lcom/nvidia/spark/rapids/RapidsConf;"
          + "Lorg/apache/spark/sql/rapids/RapidsDiskBlockManager;)V"),
  DISK_BLOCK_MANAGER(
      RapidsFeature.ENV_WITH_DISK,
      Kind.OBJECT,
      Owner.RAPIDS + "RapidsBufferCatalog$",
      "getDiskBlockManager",
      "()Lorg/apache/spark/sql/rapids/RapidsDiskBlockManager;"),

  NEW_HASH_PARTITIONING(
      RapidsFeature.KUDO,
      Kind.CONSTRUCTOR,
      Owner.HASH,
      "<init>",
      "(Lscala/collection/immutable/Seq;ILcom/nvidia/spark/rapids/HashMode;)V"),
  HASH_EXPRESSIONS(
      RapidsFeature.KUDO,
      Kind.METHOD,
      Owner.HASH,
      "expressions",
      "()Lscala/collection/immutable/Seq;"),
  HASH_PARTITIONS(RapidsFeature.KUDO, Kind.METHOD, Owner.HASH, "numPartitions", "()I"),
  HASH_MODE(
      RapidsFeature.KUDO,
      Kind.METHOD,
      Owner.HASH,
      "hashMode",
      "()Lcom/nvidia/spark/rapids/HashMode;"),
  HASH_TO_GPU(RapidsFeature.KUDO, Kind.METHOD, Owner.HASH, "usesGPUShuffle", "()Z"),
  HASH_SLICE(RapidsFeature.KUDO, Kind.METHOD, Owner.HASH, Owner.SLICE, Owner.SLICE_DESCRIPTOR),
  RANGE_TO_GPU(
      RapidsFeature.KUDO,
      Kind.METHOD,
      Owner.RAPIDS + "shims.GpuRangePartitioning",
      "usesGPUShuffle",
      "()Z"),
  COLUMN_DATA(
      RapidsFeature.KUDO,
      Kind.PRIVATE_STATIC,
      "ai.rapids.cudf.ColumnView",
      "getNativeDataAddress",
      "(J)J"),
  NEW_ROUND_ROBIN(RapidsFeature.KUDO, Kind.CONSTRUCTOR, Owner.ROUND_ROBIN, "<init>", "(I)V"),
  ROUND_ROBIN_PARTITIONS(
      RapidsFeature.KUDO, Kind.METHOD, Owner.ROUND_ROBIN, "numPartitions", "()I"),
  ROUND_ROBIN_TO_GPU(RapidsFeature.KUDO, Kind.METHOD, Owner.ROUND_ROBIN, "usesGPUShuffle", "()Z"),
  ROUND_ROBIN_SLICE(
      RapidsFeature.KUDO, Kind.METHOD, Owner.ROUND_ROBIN, Owner.SLICE, Owner.SLICE_DESCRIPTOR),

  SPILL_STORES(
      RapidsFeature.SPILL_STORE,
      Kind.OBJECT,
      Owner.SPILL + "SpillFramework$",
      "stores",
      "()Lcom/nvidia/spark/rapids/spill/SpillableStores;"),
  DEVICE_STORE(
      RapidsFeature.SPILL_STORE,
      Kind.METHOD,
      Owner.SPILL + "SpillableStores",
      "deviceStore",
      "()Lcom/nvidia/spark/rapids/spill/SpillableDeviceStore;"),
  TRACK(
      RapidsFeature.SPILL_STORE,
      Kind.METHOD,
      Owner.SPILL + "SpillableDeviceStore",
      "track",
      "(Lcom/nvidia/spark/rapids/spill/StoreHandle;)V"),
  REMOVE(
      RapidsFeature.SPILL_STORE,
      Kind.METHOD,
      Owner.SPILL + "SpillableDeviceStore",
      "remove",
      "(Lcom/nvidia/spark/rapids/spill/StoreHandle;)V"),
  DEVICE_HANDLE(
      RapidsFeature.SPILL_STORE, Kind.CLASS, Owner.SPILL + "DeviceSpillableHandle", "", "");

  /** The exchange of an RDD of batches. */
  static final String DEPENDENCY = Owner.DEPENDENCY;

  /** The way in which it is bound. */
  private enum Kind {
    CLASS,
    METHOD,
    STATIC,

    /** A static method that only its own class may call. */
    PRIVATE_STATIC,
    CONSTRUCTOR,

    /** A method of a Scala object, whose instance is in the field MODULE$. */
    OBJECT
  }

  /** Names that several members share. */
  private static final class Owner {
    static final String RAPIDS = "com.nvidia.spark.rapids.";
    static final String SPILL = RAPIDS + "spill.";
    static final String DEPENDENCY = "org.apache.spark.sql.rapids.GpuShuffleDependency";
    static final String ENV = "org.apache.spark.sql.rapids.GpuShuffleEnv$";
    static final String COLUMN = RAPIDS + "GpuColumnVector";
    static final String HASH = RAPIDS + "shims.GpuHashPartitioning";
    static final String ROUND_ROBIN = RAPIDS + "GpuRoundRobinPartitioning";
    static final String SLICE = "sliceInternalGpuOrCpuAndClose";
    static final String SLICE_DESCRIPTOR =
        "(I[I[Lcom/nvidia/spark/rapids/GpuColumnVector;)[Lscala/Tuple2;";

    private Owner() {}
  }

  private final RapidsFeature feature;
  private final Kind kind;
  private final String owner;
  private final String member;
  private final String descriptor;

  RapidsMember(
      final RapidsFeature feature,
      final Kind kind,
      final String owner,
      final String member,
      final String descriptor) {
    this.feature = feature;
    this.kind = kind;
    this.owner = owner;
    this.member = member;
    this.descriptor = descriptor;
  }

  /** What cannot be done without it. */
  public RapidsFeature feature() {
    return feature;
  }

  /** Class, name and descriptor, parted by blanks; for a class its name alone. */
  public String signature() {
    return kind == Kind.CLASS ? owner : owner + " " + member + " " + descriptor;
  }

  /** The class that it is, or that has it; not initialised. */
  public Class<?> owner(final ClassLoader loader) throws ClassNotFoundException {
    return Class.forName(owner, false, loader);
  }

  /**
   * Looks for it without initialising a class of RAPIDS'.
   *
   * @throws ReflectiveOperationException if it is not there, or is another
   */
  @SuppressWarnings("ReturnValueIgnored") // Looked up only to see that it is there.
  void find(final ClassLoader loader) throws ReflectiveOperationException {
    final Class<?> of = owner(loader);
    if (kind != Kind.CLASS) {
      handle(loader, of);
    }
    if (kind == Kind.OBJECT) {
      of.getField("MODULE$");
    }
  }

  /**
   * Binds a method or a constructor; a Scala object's to its instance.
   *
   * @throws ReflectiveOperationException if it is not there, or is another
   */
  public MethodHandle bind(final ClassLoader loader) throws ReflectiveOperationException {
    final Class<?> of = owner(loader);
    final MethodHandle handle = handle(loader, of);
    return kind == Kind.OBJECT ? handle.bindTo(of.getField("MODULE$").get(null)) : handle;
  }

  private MethodHandle handle(final ClassLoader loader, final Class<?> of)
      throws ReflectiveOperationException {
    final MethodHandles.Lookup lookup =
        kind == Kind.PRIVATE_STATIC
            ? MethodHandles.privateLookupIn(of, MethodHandles.lookup())
            : MethodHandles.publicLookup();
    final MethodType type;
    try {
      type = MethodType.fromMethodDescriptorString(descriptor, loader);
    } catch (final TypeNotPresentException e) {
      throw new NoSuchMethodException(of.getName() + "." + member + descriptor + ": " + e);
    }
    return switch (kind) {
      case STATIC, PRIVATE_STATIC -> lookup.findStatic(of, member, type);
      case CONSTRUCTOR -> lookup.findConstructor(of, type);
      default -> lookup.findVirtual(of, member, type);
    };
  }

  /**
   * A feature that needs parts of RAPIDS which a version may lack: {@link RapidsMember} lists the
   * parts, and {@link RapidsProbe} finds them.
   */
  public enum RapidsFeature {
    /** Batches in GPU memory go through Zerohop; nothing works without it. */
    SHUFFLE("shuffles in GPU memory"),

    /** RAPIDS' shuffle environment is made of its configuration: from 25.02 on. */
    ENV_OF_CONF("a shuffle environment made of the configuration"),

    /** It is made with a place for spilled buffers, too: 24.12. */
    ENV_WITH_DISK("a shuffle environment made with a disk block manager"),

    /** Whole batches are split by RAPIDS' serializer on the GPU. */
    KUDO("splitting whole batches by RAPIDS' serializer"),

    /** RAPIDS asks our pool for memory when the GPU has none left: from 25.02 on. */
    SPILL_STORE("giving GPU memory back when RAPIDS runs out of it");

    private final String words;

    RapidsFeature(final String words) {
      this.words = words;
    }

    /** What it is for, within a sentence. */
    public String words() {
      return words;
    }
  }
}
