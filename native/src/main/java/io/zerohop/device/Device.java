package io.zerohop.device;

/**
 * A place where bytes live and a way to move them: shared host memory, or one GPU.
 *
 * <p>Everything above this package works on addresses that are valid on the device, whether the
 * memory was allocated here or mapped from a peer. Implementations are thread safe. A device owns
 * nothing that it hands out: each segment and stream is closed by whoever asked for it, and {@link
 * #close()} fails if any is still open, so that leaks show in tests.
 */
public interface Device extends AutoCloseable {

  /** A short name for messages, such as {@code host} or {@code cuda:0}. */
  String name();

  /** Allocates memory that peers may write to, as below. */
  default Segment allocate(final long bytes) {
    return allocate(bytes, PeerAccess.WRITE);
  }

  /**
   * Allocates exportable memory. All of it is reserved at once, so that a lack of memory is an
   * error here and never a fault later.
   *
   * @param bytes wanted size; rounded up to {@link #granularity()}
   * @param access what peers may do with it
   * @throws DeviceMemoryException (RETRY) when the device cannot give that much now
   */
  Segment allocate(long bytes, PeerAccess access);

  /** Maps memory for reading and writing, as below. */
  default Segment map(final SegmentHandle handle, final String owner) {
    return map(handle, owner, PeerAccess.WRITE);
  }

  /**
   * Maps memory that a peer exported. The handle is consumed: its descriptor is closed here whether
   * or not the call succeeds.
   *
   * @param owner names the peer in messages, such as {@code executor 3}
   * @param access what for; whoever writes to host memory that was mapped for reading ends the
   *     process
   * @throws ZerohopException (FALLBACK) if the handle is not a segment this device can trust and
   *     map, or its owner does not allow the access
   */
  Segment map(SegmentHandle handle, String owner, PeerAccess access);

  /**
   * Maps memory that a peer lends, for reading and writing, as {@link #map} does. This process
   * hands it on: the segment can be exported, also when the peer has ended.
   *
   * @throws ZerohopException (FALLBACK) as {@link #map}
   */
  Segment borrow(SegmentHandle handle, String lender);

  /** Segment sizes are multiples of this many bytes. */
  long granularity();

  /** Whether this process may read and write addresses of the device's segments itself. */
  default boolean hostAccessible() {
    return true;
  }

  /**
   * Memory through which bytes come from the host to the device and back.
   *
   * @throws DeviceMemoryException (RETRY) when there is none now
   */
  HostBuffer hostBuffer(long bytes);

  /**
   * Lets copies of this device reach host memory that is there already, such as a segment of the
   * host's, at the address that the host uses. Takes some milliseconds for each 64 MiB on a GPU.
   *
   * @return the same memory, for the caller to close before it unmaps any of it; bytes are left as
   *     they are, then and now
   * @throws ZerohopException (RETRY) if the device cannot have it
   */
  HostBuffer pin(long address, long bytes);

  /** Opens a stream; copies submitted to one stream happen in order, those of two need not. */
  CopyStream openStream(String name);

  /**
   * Opens a stream whose copies are also in order with what other libraries enqueue on this device
   * for the thread that submits them (on CUDA its default stream). One thread at a time submits.
   */
  default CopyStream openThreadStream(final String name) {
    return openStream(name);
  }

  /**
   * A signal word inside a segment of this device.
   *
   * @param offset byte offset in the segment, a multiple of {@link Signal#BYTES}
   */
  Signal signal(Segment segment, long offset);

  /**
   * A signal word of the host's for streams of this device, too: they wait for it and raise it as
   * they do with words in the device's own memory.
   *
   * @param word in host memory that this device reaches ({@link #pin}) until its streams have
   *     passed
   * @param address of the word
   */
  default Signal pinnedSignal(final Signal word, final long address) {
    return word;
  }

  /**
   * The visibility, to this device's kernels, of bytes that a network adapter wrote to its memory.
   */
  enum AdapterWrites {
    /** All of them, once the adapter has reported the end of the write. */
    ORDERED,
    /** All of them after {@link #flushAdapterWrites}. */
    FLUSHED,
    /** Nobody can tell when: an adapter must not write there. */
    UNORDERED
  }

  /** When kernels that are launched now see what an adapter has written. */
  default AdapterWrites adapterWrites() {
    return AdapterWrites.ORDERED;
  }

  /**
   * Makes what adapters have written before visible to kernels that are launched after it returns;
   * does nothing where {@link #adapterWrites} is not FLUSHED.
   *
   * @throws ZerohopException if that fails
   */
  default void flushAdapterWrites() {}

  /** Whether segments can be handed to other nodes of an NVLink fabric. */
  default FabricReach fabric() {
    return FabricReach.none(name() + " is in no NVLink fabric");
  }

  /** Segments (own and mapped) and streams that are open now; zero when everything was returned. */
  int openResources();

  /**
   * Prepares the calling thread for a library that is to use this device from it, for as long as
   * the thread lives; on CUDA the device's context becomes current.
   */
  default void enter() {}

  /**
   * Closes the device.
   *
   * @throws IllegalStateException if segments or streams are still open; they are named
   */
  @Override
  void close();

  /**
   * Tells whether a device's segments can be passed to other nodes of one NVLink fabric, by {@link
   * Segment#exportFabric}. Immutable.
   *
   * @param clique cluster and clique as NVML names them, 32 hexadecimal digits, a slash and a
   *     number; devices of one clique reach one another. Empty if segments cannot be handed over
   * @param absence why not, for a log; empty if they can
   */
  record FabricReach(String clique, String absence) {

    public static FabricReach none(final String absence) {
      return new FabricReach("", absence);
    }

    /** Whether segments have fabric handles. */
    public boolean possible() {
      return !clique.isEmpty();
    }
  }
}
