package io.zerohop.spark.proof;

import java.time.Duration;

/**
 * This host.
 *
 * @param name of it in reports
 * @param host address of the interface that UCX may listen on
 * @param gpu number of the GPU that is used
 * @param life most time that a worker lives
 */
record OwnSide(String name, String host, int gpu, Duration life) implements Side {
  @Override
  public HostFacts facts() {
    return HostFacts.read(gpu);
  }

  @Override
  public ChildProcess start(final MemoryKind kind) {
    return ChildProcess.start(kind, gpu, host, life);
  }
}
