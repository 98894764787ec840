package io.zerohop.shuffle.transport.ucx.jucx;

import io.zerohop.device.Transitions;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.transport.remote.Carrier.Completion;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxMemory;
import io.zerohop.shuffle.transport.ucx.jucx.JucxEngine.JucxMemory;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.openucx.jucx.UcxCallback;
import org.openucx.jucx.ucp.UcpEndpoint;
import org.openucx.jucx.ucp.UcpEndpointParams;
import org.openucx.jucx.ucp.UcpRemoteKey;
import org.openucx.jucx.ucp.UcpRequest;
import org.openucx.jucx.ucs.UcsConstants;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One peer. All but the public methods is done by the worker's thread. The native endpoint is held
 * from here, since jucx itself only knows it weakly.
 */
final class JucxEndpoint implements UcxEndpoint {
  private static final Logger LOG = LoggerFactory.getLogger(JucxEndpoint.class);

  /** The steps of an endpoint. */
  enum State {
    /** UCX knows nothing of it. */
    NEW,

    /** Requests may be made. */
    OPEN,

    /** UCX has lost the peer; what is under way ends with the endpoint. */
    LOST,

    /** Disconnected; nothing more is sent to UCX. */
    CLOSED;

    static final Transitions<State> TRANSITIONS =
        new Transitions<>(
            Map.of(NEW, Set.of(OPEN, LOST), OPEN, Set.of(LOST, CLOSED), LOST, Set.of(CLOSED)));
  }

  private final JucxWorker worker;
  private final Consumer<String> onFailure;
  private final Consumer<JucxEndpoint> onClose;
  private final UnpackedKeys<UcpRemoteKey> keys =
      new UnpackedKeys<>(this::unpack, UcpRemoteKey::close);

  private State state = State.NEW;

  /** There until it is closed. */
  private @Nullable UcpEndpoint endpoint;

  /** Why nothing can be asked of it any more. */
  private String failure = "the endpoint was closed";

  /** Requests that UCX has been given and that have not called back. */
  private int underWay;

  JucxEndpoint(
      final JucxWorker worker,
      final Consumer<String> onFailure,
      final Consumer<JucxEndpoint> onClose) {
    this.worker = worker;
    this.onFailure = onFailure;
    this.onClose = onClose;
  }

  void open(final byte[] peer) {
    endpoint =
        worker
            .worker()
            .newEndpoint(
                new UcpEndpointParams()
                    .setUcpAddress(direct(peer))
                    .setPeerErrorHandlingMode()
                    .setErrorHandler((which, status, message) -> lost(message)));
    if (state == State.NEW) {
      become(State.OPEN);
    }
  }

  private void become(final State next) {
    state = State.TRANSITIONS.go(state, next, "an endpoint of UCX");
  }

  private static ByteBuffer direct(final byte[] bytes) {
    final ByteBuffer buffer = ByteBuffer.allocateDirect(bytes.length);
    buffer.put(bytes).flip();
    return buffer;
  }

  private void lost(final @Nullable String message) {
    if (state == State.NEW || state == State.OPEN) {
      become(State.LOST);
      failure = message == null ? "UCX lost the peer" : message;
      onFailure.accept(failure);
    }
  }

  @Override
  public void get(
      final byte[] key,
      final long remoteAddress,
      final long localAddress,
      final long bytes,
      final @Nullable UcxMemory gpu,
      final Completion done) {
    submit(
        done,
        (open, request) -> {
          if (gpu instanceof JucxMemory to) {
            to.get(open, keys.of(key), remoteAddress, localAddress, bytes, request);
          } else {
            open.getNonBlocking(
                remoteAddress, keys.of(key), localAddress, bytes, request, JucxEngine.HOST);
          }
        });
  }

  private UcpRemoteKey unpack(final byte[] key) {
    final ByteBuffer direct = direct(key);
    try {
      return Objects.requireNonNull(endpoint, "the endpoint is closed").unpackRemoteKey(direct);
    } finally {
      Reference.reachabilityFence(direct);
    }
  }

  private void submit(final Completion done, final BiConsumer<UcpEndpoint, JucxRequest> start) {
    worker.begun();
    final JucxRequest request = new JucxRequest(done);
    if (worker.isDead()) {
      request.onError(UcsConstants.STATUS.UCS_ERR_CONNECTION_RESET, "UCX has ended here");
      return;
    }
    worker.execute(
        () -> {
          final UcpEndpoint open = endpoint;
          if (open == null || state != State.OPEN || worker.isDead()) {
            request.onError(UcsConstants.STATUS.UCS_ERR_CONNECTION_RESET, failure);
            return;
          }
          request.begin();
          try {
            start.accept(open, request);
          } catch (final RuntimeException e) {
            request.onError(UcsConstants.STATUS.UCS_ERR_IO_ERROR, e.getMessage());
          }
        });
  }

  @Override
  public void close() {
    worker.execute(this::disconnect);
  }

  /** Disconnects; called by the worker's thread, or after it has ended. Idempotent. */
  void disconnect() {
    final UcpEndpoint open = endpoint;
    if (open == null) {
      return;
    }
    become(State.CLOSED);
    endpoint = null;
    // Ends what is under way, some of it only while the worker goes on.
    open.closeNonBlockingForce();
    destroyUnusedKeys();
    onClose.accept(this);
  }

  /** UCX reads a key until the last get that uses it has called back. */
  private void destroyUnusedKeys() {
    if (underWay > 0) {
      return;
    }
    if (state == State.CLOSED) {
      keys.destroy();
    } else {
      keys.trim();
    }
  }

  /**
   * One request under way: tells how it has ended, and does what had to wait for that. UCX may call
   * back and throw for the same one; it is completed once. Only the worker's thread comes here.
   */
  private final class JucxRequest extends UcxCallback {
    private final Completion done;
    private boolean begun;
    private boolean completed;

    /** For a request that the worker was told of, see {@link JucxWorker#begun}. */
    JucxRequest(final Completion done) {
      this.done = done;
    }

    void begin() {
      begun = true;
      underWay++;
    }

    @Override
    public void onSuccess(final UcpRequest request) {
      complete(null);
    }

    @Override
    public void onError(final int status, final @Nullable String message) {
      complete(message == null ? "UCX status " + status : message);
    }

    private void complete(final @Nullable String problem) {
      if (completed) {
        return;
      }
      completed = true;
      worker.ended();
      try {
        try {
          done.done(problem);
        } finally {
          if (begun) {
            underWay--;
            destroyUnusedKeys();
          }
        }
      } catch (final RuntimeException e) {
        // It must not go into UCX.
        ShuffleCode.REQUEST_END_FAILED.says("could not handle the end of a request").error(LOG, e);
      }
    }
  }

  /**
   * Keys of a peer's segments as UCX takes them, each unpacked once. A peer that runs for weeks
   * makes ever new segments, and nobody says which are gone; so all are let go when there are more
   * than it can have at a time and none is in use. Owns the keys; for one thread.
   *
   * @param <K> an unpacked key
   */
  static final class UnpackedKeys<K> {
    /** Segments that a peer has at most at once. */
    static final int MOST = SegmentIds.MAX_SLOTS;

    private final Function<byte[], K> unpacker;
    private final Consumer<K> destroyer;
    private final Map<ByteBuffer, K> keys = new HashMap<>();

    UnpackedKeys(final Function<byte[], K> unpacker, final Consumer<K> destroyer) {
      this.unpacker = unpacker;
      this.destroyer = destroyer;
    }

    /** The key; stays this object's, and is good until the next call of one of the others. */
    K of(final byte[] packed) {
      return keys.computeIfAbsent(ByteBuffer.wrap(packed), first -> unpacker.apply(packed));
    }

    /** None of them is in use now. */
    void trim() {
      if (keys.size() > MOST) {
        destroy();
      }
    }

    /** Lets all go; none may be in use. */
    void destroy() {
      keys.values().forEach(destroyer);
      keys.clear();
    }

    int size() {
      return keys.size();
    }
  }
}
