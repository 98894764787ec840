package io.zerohop.shuffle.transport.ucx.jucx;

import io.zerohop.device.Transitions;
import java.util.Map;
import java.util.Set;

/** The life cycle of an owner of UCX objects. */
enum Lifecycle {
  /** At work. */
  OPEN,

  /**
   * Nothing more is taken. It stays so if the thread that drives UCX does not end: what that may
   * touch is not freed then.
   */
  CLOSING,

  /** The thread has ended; what it used is freed. */
  CLOSED;

  static final Transitions<Lifecycle> TRANSITIONS =
      new Transitions<>(Map.of(OPEN, Set.of(CLOSING), CLOSING, Set.of(CLOSED)));
}
