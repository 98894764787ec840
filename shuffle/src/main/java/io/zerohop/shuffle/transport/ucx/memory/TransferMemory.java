package io.zerohop.shuffle.transport.ucx.memory;

import io.zerohop.device.Device;
import io.zerohop.device.Device.AdapterWrites;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.pool.Tiers;
import io.zerohop.shuffle.transport.remote.memory.Slabs;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import org.jspecify.annotations.Nullable;

/**
 * The memory of one executor that UCX reads and writes. Its parts are thread safe. Owns the slabs
 * and the test ranges; the pools stay the caller's.
 *
 * @param segments own segments that peers get from
 * @param slabs pinned host memory that bytes are received in
 * @param gpuSlabs GPU memory that bytes are received in; absent where UCX does not reach it
 * @param hostTest host memory that peers read at first contact
 * @param gpuTest GPU memory that peers read at first contact; absent where UCX does not reach it
 */
public record TransferMemory(
    RegisteredSegments segments,
    Slabs slabs,
    @Nullable GpuSlabs gpuSlabs,
    TestRange hostTest,
    @Nullable TestRange gpuTest)
    implements AutoCloseable {

  /**
   * Memory of an executor's devices and pools.
   *
   * @param incarnation of this executor: the bytes of its test ranges follow from it
   * @param conf bounds receive buffers in host memory
   * @param clock by which they are idle
   */
  public static TransferMemory of(
      final UcxEngine engine,
      final long incarnation,
      final Devices devices,
      final Tiers tiers,
      final Config conf,
      final Clock clock) {
    final Device device = devices.of(devices.hasGpu() ? Tier.DEVICE : Tier.HOST);
    final boolean direct =
        devices.hasGpu()
            && engine.reachesGpuMemory()
            && device.adapterWrites() != AdapterWrites.UNORDERED;
    final RegisteredSegments segments = new RegisteredSegments(engine, tiers, clock);
    return new TransferMemory(
        segments,
        new Slabs(device::hostBuffer, conf.fetch().receiveBuffers(), clock),
        direct ? new GpuSlabs(tiers.of(Tier.DEVICE), segments, device) : null,
        new TestRange(engine, device, Tier.HOST, incarnation),
        direct ? new TestRange(engine, device, Tier.DEVICE, incarnation) : null);
  }

  /** Frees what it owns. The engine must have ended, so that nothing reads or writes it. */
  @Override
  public void close() {
    hostTest.close();
    if (gpuTest != null) {
      gpuTest.close();
    }
    slabs.close();
  }
}
