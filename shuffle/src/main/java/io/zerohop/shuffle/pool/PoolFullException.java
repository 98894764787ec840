package io.zerohop.shuffle.pool;

import io.zerohop.device.DeviceMemoryException;
import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * Thrown if the pool has no room for a region; the bytes must go elsewhere. Nothing was changed.
 */
public final class PoolFullException extends ZerohopException {
  private static final long serialVersionUID = 1L;

  public PoolFullException(final String what, final @Nullable Throwable cause) {
    this(Message.of(what), cause);
  }

  public PoolFullException(final Message message, final @Nullable Throwable cause) {
    super(Category.FALLBACK, message, cause);
  }

  /** Of a pool that takes nothing any more. */
  static PoolFullException frozen(final Tier tier) {
    return new PoolFullException(
        Message.of("the pool is frozen, since this executor can no longer share memory")
            .at(name(tier))
            .remedy("see its log, and restart it"),
        null);
  }

  /** Of a pool that gave memory away just now. */
  static PoolFullException paused(final Tier tier) {
    return new PoolFullException(
        Message.of(
                "the pool pauses for some seconds, since other users ran out of this memory and"
                    + " took part of the pool")
            .at(name(tier))
            .remedy("lower " + tier.sizeKey() + ", or leave more memory free beside it"),
        null);
  }

  /**
   * Of a pool, or its device, that has no room.
   *
   * @param state how much the pool holds
   * @param cause what the device said, if it was out of memory
   */
  static PoolFullException full(
      final Tier tier,
      final long bytes,
      final String state,
      final @Nullable DeviceMemoryException cause) {
    return new PoolFullException(
        Message.of("no room for " + bytes + " bytes")
            .at(name(tier))
            .because(state + (cause == null ? "" : ", and the device is out of memory"))
            .remedy(tier.remedy()),
        cause);
  }

  private static String name(final Tier tier) {
    return tier.name().toLowerCase(Locale.ROOT) + " pool";
  }
}
