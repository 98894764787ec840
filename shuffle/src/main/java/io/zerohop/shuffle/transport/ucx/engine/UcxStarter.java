package io.zerohop.shuffle.transport.ucx.engine;

/** Starts UCX in this process. */
@FunctionalInterface
public interface UcxStarter {

  /**
   * Starts it.
   *
   * @param onStart run by the engine's thread first of all
   * @return owned by the caller
   * @throws UcxException if it cannot be used here
   */
  UcxEngine start(Runnable onStart);
}
