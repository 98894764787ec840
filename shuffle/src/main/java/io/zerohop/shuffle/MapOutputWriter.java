package io.zerohop.shuffle;

/** One map task's output while it is being written. */
public abstract class MapOutputWriter implements AutoCloseable {
  MapOutputWriter() {}

  public abstract void append(PackSource source);

  public abstract void forEachExtent(int partition, ExtentConsumer consumer);

  public abstract long bytes();

  public abstract long[] commit();

  @Override
  public abstract void close();
}
