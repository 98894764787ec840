package io.zerohop.device.exchange;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import org.jspecify.annotations.Nullable;

/** Peers could not exchange segments. The reason tells what that says about the peer. */
public final class ExchangeException extends ZerohopException {
  private static final long serialVersionUID = 1L;

  /** The kind of failure. REFUSED frames carry the ordinal: the order is part of the protocol. */
  public enum Reason {
    /** There is no such socket file: the peer ended in good order, or sees another folder. */
    ABSENT(Category.FALLBACK),
    /** Nobody listens on the socket any more: its owner is dead. */
    REFUSED(Category.FALLBACK),
    /** The peer has as many connections as it allows; later it may have fewer. */
    BUSY(Category.RETRY),
    /** The limit passed. */
    TIMEOUT(Category.RETRY),
    /** The peer is of another user, or of another application, or not who it was taken for. */
    AUTHENTICATION(Category.FALLBACK),
    /** The peer does not speak the protocol, or not this version of it. */
    PROTOCOL(Category.FALLBACK),
    /** The connection ended. */
    CLOSED(Category.FALLBACK),
    /** The peer could not hand this segment over, or it could not be taken; the link is well. */
    UNAVAILABLE(Category.FALLBACK),
    /** Another life answers where the peer did: that one has ended. */
    REPLACED(Category.FALLBACK);

    private final Category category;

    Reason(final Category category) {
      this.category = category;
    }
  }

  private final Reason reason;

  public ExchangeException(final Reason reason, final @Nullable String what) {
    this(reason, what, null);
  }

  public ExchangeException(
      final Reason reason, final @Nullable String what, final @Nullable Throwable cause) {
    this(reason, Message.of(String.valueOf(what)), cause);
  }

  public ExchangeException(final Reason reason, final Message message) {
    this(reason, message, null);
  }

  public ExchangeException(
      final Reason reason, final Message message, final @Nullable Throwable cause) {
    super(reason.category, message, cause);
    this.reason = reason;
  }

  /** What went wrong. */
  public Reason reason() {
    return reason;
  }
}
