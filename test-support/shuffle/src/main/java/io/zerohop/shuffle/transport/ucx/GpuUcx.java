package io.zerohop.shuffle.transport.ucx;

import io.zerohop.shuffle.DeviceOnlyGpu;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.remote.Carrier.Completion;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxMemory;
import io.zerohop.shuffle.transport.ucx.engine.UcxException;
import io.zerohop.shuffle.transport.ucx.memory.TestRange;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.agrona.concurrent.UnsafeBuffer;

/** UCX that reaches the memory of a {@link DeviceOnlyGpu}, as one with CUDA reaches a GPU's. */
final class GpuUcx implements UcxEngine {
  private final UcxEngine near;

  /** Gets of blocks that went into the device's memory. */
  private final AtomicInteger gets;

  /** Test reads between devices that are emulated, whatever this machine's UCX makes of them. */
  private final AtomicInteger emulated;

  /** Where test reads go to in that, and what peers read for a test. */
  private final Set<Long> testRanges = ConcurrentHashMap.newKeySet();

  /** While set, it cannot register the device's memory. */
  volatile boolean refuses;

  /** How often it did. */
  final AtomicInteger refusals = new AtomicInteger();

  /** While set, reads between devices fail. */
  volatile boolean broken;

  /** Test reads between devices are none of the owner's work: as by a link. */
  volatile boolean linked;

  /** Takes the engine over. */
  GpuUcx(final UcxEngine near, final AtomicInteger gets, final AtomicInteger emulated) {
    this.near = near;
    this.gets = gets;
    this.emulated = emulated;
  }

  /** Of a registration that it has made; UCX knows it as host memory. */
  private record FarMemory(UcxMemory memory) implements UcxMemory {
    @Override
    public byte[] key() {
      return memory.key();
    }

    @Override
    public void close() {
      memory.close();
    }
  }

  private static long near(final long address) {
    return isDeviceOnly(address) ? DeviceOnlyGpu.near(address) : address;
  }

  private static boolean isDeviceOnly(final long address) {
    return address >= -DeviceOnlyGpu.near(0);
  }

  @Override
  public String describe() {
    return near.describe() + ", as if with CUDA";
  }

  @Override
  public boolean reachesGpuMemory() {
    return true;
  }

  /** None, also on a machine that has one: links between these devices are what is tested. */
  @Override
  public boolean rdma() {
    return false;
  }

  @Override
  public long events() {
    return near.events() + emulated.get();
  }

  @Override
  public byte[] address() {
    return near.address();
  }

  @Override
  public UcxMemory register(final Tier kind, final long address, final long bytes) {
    if (kind == Tier.HOST) {
      return near.register(kind, address, bytes);
    }
    if (!isDeviceOnly(address)) {
      throw new AssertionError("host memory is registered as the device's");
    }
    if (refuses) {
      refusals.incrementAndGet();
      throw new UcxException("a test wants it", null);
    }
    if (bytes == TestRange.BYTES || bytes == TestRange.FEWER_BYTES) {
      testRanges.add(address);
    }
    return new FarMemory(near.register(Tier.HOST, near(address), bytes));
  }

  @Override
  public UcxEndpoint connect(final byte[] address, final Consumer<String> onFailure) {
    final UcxEndpoint endpoint = near.connect(address, onFailure);
    return new UcxEndpoint() {
      @Override
      public void get(
          final byte[] key,
          final long remoteAddress,
          final long localAddress,
          final long bytes,
          final UcxMemory gpu,
          final Completion done) {
        if (isDeviceOnly(localAddress) != gpu instanceof FarMemory) {
          throw new AssertionError("it is not said which memory it goes to");
        }
        if (gpu != null && broken) {
          done.done("a test wants it");
          return;
        }
        final boolean test = gpu != null && testRanges.contains(localAddress);
        if (test && linked) {
          final int length = (int) bytes;
          new UnsafeBuffer(near(localAddress), length)
              .putBytes(0, new UnsafeBuffer(near(remoteAddress), length), 0, length);
          done.done(null);
          return;
        }
        if (gpu != null) {
          (test ? emulated : gets).incrementAndGet();
        }
        endpoint.get(key, near(remoteAddress), near(localAddress), bytes, null, done);
      }

      @Override
      public void close() {
        endpoint.close();
      }
    };
  }

  @Override
  public int pending() {
    return near.pending();
  }

  @Override
  public boolean end() {
    return near.end();
  }
}
