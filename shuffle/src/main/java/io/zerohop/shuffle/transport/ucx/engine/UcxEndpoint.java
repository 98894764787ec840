package io.zerohop.shuffle.transport.ucx.engine;

/** A way to one other worker. Thread safe; calls return at once. */
public interface UcxEndpoint extends AutoCloseable {

  /**
   * Reads the peer's memory.
   *
   * @param key of the peer's memory, as {@link UcxMemory#key} gave it there
   * @param remoteAddress of the first byte, in the peer's address space
   * @param localAddress where it goes; must stay mapped until {@code done} was called
   * @param gpu the registration of GPU memory that it goes to; null for host memory
   * @param done called once, whatever happens; memory is not written any more after that
   */
  void get(
      byte[] key,
      long remoteAddress,
      long localAddress,
      long bytes,
      UcxMemory gpu,
      UcxCompletion done);

  /**
   * Sends bytes to the peer's {@link UcxReceiver}.
   *
   * @param id names the transfer
   * @param offset where the bytes go in it
   * @param address must stay mapped, and as it is, until {@code done} was called
   * @param done called once, whatever happens; success says that the bytes may be changed again
   */
  void send(long id, long offset, long address, long bytes, UcxCompletion done);

  /** Gives up what is under way, whose completions follow, and disconnects. Idempotent. */
  @Override
  void close();
}
