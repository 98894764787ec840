package io.zerohop.shuffle.transport.ucx.engine;

import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.remote.Carrier.Completion;
import java.time.Duration;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * UCX in this process: one context, one worker, and one thread that drives it. Nothing of jucx is
 * seen through it, so that the binding may come from a jar of the user's choice. Thread safe; what
 * is asked for is done by the engine's thread, one thing after the other, and whoever made the
 * engine owns and closes it.
 */
public interface UcxEngine extends AutoCloseable {
  /** How long what an adapter gave no event for lies there at most, if {@link #wake} is called. */
  Duration WAKE_PERIOD = Duration.ofMillis(50);

  /** Returns the loaded binding and its capabilities, for the log. */
  String describe();

  /** The same without places of this machine, for what is published. */
  default String library() {
    return describe();
  }

  /** Returns the address by which others reach this worker; opaque. Not to be changed. */
  byte[] address();

  /** Returns whether it can read and write the memory of this process's GPU. */
  boolean reachesGpuMemory();

  /** Returns whether this node has an adapter that reads and writes memory on its own. */
  boolean rdma();

  /**
   * Returns the events that peers caused on its thread since its start. A get of a peer adds one or
   * more if it is emulated, and none if it is one-sided; requests of its own may add some, their
   * ends do not.
   */
  long events();

  /**
   * Makes memory readable by those who have its key. Takes some milliseconds for each 64 MiB where
   * a network card pins it.
   *
   * @param kind of the memory; GPU memory only if it is reached
   * @param address of memory that stays mapped until this is closed
   * @return owned by the caller
   * @throws UcxException if it cannot be
   */
  UcxMemory register(Tier kind, long address, long bytes);

  /**
   * An endpoint to another worker. Does not wait for it: a peer that is not there shows in what is
   * asked of it.
   *
   * @param onFailure called once, by the engine's thread, when the peer is found to be lost
   * @return owned by the caller
   * @throws UcxException if the address is none, or cannot be reached from here by any transport
   */
  UcxEndpoint connect(byte[] address, Consumer<String> onFailure);

  /**
   * Has the engine's thread look for progress if it sleeps. To be called each {@link #WAKE_PERIOD}
   * where there is an adapter ({@link #rdma}), since some lose events. Does not wait.
   */
  default void wake() {}

  /** Requests that were begun and have not called back yet. */
  int pending();

  /**
   * Ends what is under way, with a failure, and frees everything. Waits for the thread for a
   * limited time, also if the caller is interrupted. Idempotent.
   *
   * @return false if the thread did not end: memory that it was given must stay mapped
   */
  boolean end();

  @Override
  default void close() {
    end();
  }

  /** Starts UCX in this process. */
  @FunctionalInterface
  interface UcxStarter {

    /**
     * Starts it.
     *
     * @param onStart run by the engine's thread first of all
     * @return owned by the caller
     * @throws UcxException if it cannot be used here
     */
    UcxEngine start(Runnable onStart);
  }

  /** Memory that peers may read. Thread safe; owned by whoever registered it. */
  interface UcxMemory extends AutoCloseable {

    /** Returns the key that a peer needs to read it, besides the address. Not to be changed. */
    byte[] key();

    /** Withdraws it; the memory may be unmapped then. Idempotent. */
    @Override
    void close();
  }

  /** A way to one other worker, whose memory can be read. Thread safe; calls return at once. */
  interface UcxEndpoint extends AutoCloseable {

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
}
