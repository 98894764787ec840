package io.zerohop.shuffle.transport.ucx.jucx;

import io.zerohop.shuffle.pool.SegmentIds;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * Keys of a peer's segments as UCX takes them, each unpacked once. A peer that runs for weeks makes
 * ever new segments, and nobody says which are gone; so all are let go when there are more than it
 * can have at a time and none is in use. Owns the keys; for one thread.
 *
 * @param <K> an unpacked key
 */
final class UnpackedKeys<K> {
  /** Maximum segments of one peer. */
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
