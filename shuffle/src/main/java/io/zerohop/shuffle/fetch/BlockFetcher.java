package io.zerohop.shuffle.fetch;

/** Fetches the blocks of one reader. */
public abstract class BlockFetcher implements AutoCloseable {
  BlockFetcher() {}

  public abstract boolean next();

  public abstract FetchedBlock block();

  @Override
  public abstract void close();
}
