package io.zerohop.shuffle;

import java.io.InputStream;

/** A hold on one of this node's own map outputs. */
public abstract class MapOutputLease implements AutoCloseable {
  MapOutputLease() {}

  public abstract int partitions();

  public abstract long bytes(int partition);

  public abstract void forEachExtent(int partition, ExtentConsumer consumer);

  public abstract InputStream stream(int partition);

  @Override
  public abstract void close();
}
