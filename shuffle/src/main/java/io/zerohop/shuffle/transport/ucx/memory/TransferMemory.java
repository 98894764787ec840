package io.zerohop.shuffle.transport.ucx.memory;

import io.zerohop.device.Device;
import io.zerohop.device.HostBuffer;
import io.zerohop.device.Segment;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.pool.Tiers;
import io.zerohop.shuffle.transport.remote.memory.Slabs;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;

/**
 * The memory of one executor that UCX reads and writes. Its parts are thread safe. Owns the slabs
 * and the test ranges; the pools stay the caller's.
 *
 * @param segments own segments that peers get from
 * @param slabs pinned host memory that bytes are received in
 * @param gpuSlabs GPU memory that bytes are received in; null where UCX does not reach it
 * @param hostTest host memory to measure with
 * @param gpuTest GPU memory to measure with; null where UCX does not reach it
 */
public record TransferMemory(
    RegisteredSegments segments,
    Slabs slabs,
    GpuSlabs gpuSlabs,
    TestRange hostTest,
    TestRange gpuTest)
    implements AutoCloseable {

  /**
   * Memory of an executor's devices and pools.
   *
   * @param receiveBufferBytes most bytes of receive buffers in host memory at a time
   * @param clock by which they are idle
   */
  public static TransferMemory of(
      final UcxEngine engine,
      final Devices devices,
      final Tiers tiers,
      final long receiveBufferBytes,
      final Clock clock) {
    final Device device = devices.of(devices.hasGpu() ? Tier.DEVICE : Tier.HOST);
    final boolean direct = devices.hasGpu() && engine.reachesGpuMemory();
    final RegisteredSegments segments = new RegisteredSegments(engine, tiers, clock);
    return new TransferMemory(
        segments,
        new Slabs(device::hostBuffer, receiveBufferBytes, clock),
        direct ? new GpuSlabs(tiers.of(Tier.DEVICE), segments) : null,
        new TestRange(engine, Tier.HOST, () -> hostTestMemory(device)),
        direct ? new TestRange(engine, Tier.DEVICE, () -> gpuTestMemory(device)) : null);
  }

  private static TestRange.Memory hostTestMemory(final Device device) {
    final HostBuffer buffer = device.hostBuffer(TestRange.BYTES);
    return new TestRange.Memory(buffer.address(), buffer::close);
  }

  /** None of the pool's, which a test must not use up. */
  private static TestRange.Memory gpuTestMemory(final Device gpu) {
    final Segment segment = gpu.allocate(TestRange.BYTES);
    return new TestRange.Memory(segment.address(), segment::close);
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
