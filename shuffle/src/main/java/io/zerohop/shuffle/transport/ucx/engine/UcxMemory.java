package io.zerohop.shuffle.transport.ucx.engine;

/** Memory that peers may read. Thread safe; owned by whoever registered it. */
public interface UcxMemory extends AutoCloseable {

  /** Returns the key that a peer needs to read it, besides the address. Not to be changed. */
  byte[] key();

  /** Withdraws it; the memory may be unmapped then. Idempotent. */
  @Override
  void close();
}
