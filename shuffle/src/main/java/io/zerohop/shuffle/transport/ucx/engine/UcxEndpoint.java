package io.zerohop.shuffle.transport.ucx.engine;

import io.zerohop.shuffle.transport.remote.carrier.Completion;
import org.jspecify.annotations.Nullable;

/** A way to one other worker, whose memory can be read. Thread safe; calls return at once. */
public interface UcxEndpoint extends AutoCloseable {

  /**
   * Reads the peer's memory.
   *
   * @param key of the peer's memory, as {@link UcxMemory#key} gave it there
   * @param remoteAddress of the first byte, in the peer's address space
   * @param localAddress where it goes; must stay mapped until {@code done} was called
   * @param gpu the registration of GPU memory that it goes to; absent for host memory
   * @param done called once, whatever happens; memory is not written any more after that
   */
  void get(
      byte[] key,
      long remoteAddress,
      long localAddress,
      long bytes,
      @Nullable UcxMemory gpu,
      Completion done);

  /** Gives up what is under way, whose completions follow, and disconnects. Idempotent. */
  @Override
  void close();
}
