package io.zerohop.shuffle.transport.ucx.engine;

/** Starts UCX in this process. */
@FunctionalInterface
public interface UcxStarter {

  /**
   * Starts it.
   *
   * @param oneSided whether its memory can be got, and that of others by it; without, it knows
   *     messages only, and there is less that a stranger could ask it for
   * @param onStart run by the engine's thread first of all
   * @return owned by the caller
   * @throws UcxException if it cannot be used here
   */
  UcxEngine start(boolean oneSided, Runnable onStart);
}
