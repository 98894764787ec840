package io.zerohop.shuffle.transport.ucx.owner;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.transport.remote.owner.RemoteService.CarrierAnswers;
import io.zerohop.shuffle.transport.remote.owner.ServedLease;
import io.zerohop.shuffle.transport.remote.owner.ServedReader;
import io.zerohop.shuffle.transport.remote.wire.Wire;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine;
import io.zerohop.shuffle.transport.ucx.memory.TestRange;
import io.zerohop.shuffle.transport.ucx.memory.TransferMemory;
import io.zerohop.shuffle.transport.ucx.wire.GetQuestions;
import io.zerohop.shuffle.transport.ucx.wire.GetQuestions.FabricTarget;
import io.zerohop.shuffle.transport.ucx.wire.GetQuestions.TestTarget;
import java.nio.ByteBuffer;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Data for readers that get from this owner's memory. Thread safe. */
public final class UcxAnswers implements CarrierAnswers<ServedReader> {
  private static final Logger LOG = LoggerFactory.getLogger(UcxAnswers.class);

  private final UcxEngine engine;
  private final TransferMemory memory;
  private final Clock clock;

  /**
   * @param memory what is read; stays the caller's
   * @param clock by which readers take their time
   */
  public UcxAnswers(final UcxEngine engine, final TransferMemory memory, final Clock clock) {
    this.engine = engine;
    this.memory = memory;
    this.clock = clock;
  }

  @Override
  public ServedReader reader(final Consumer<ServedLease> left) {
    return new ServedReader(left, clock);
  }

  @Override
  public byte[] hello(final ServedReader reader, final byte[] address, final boolean gpu) {
    final byte[] own = engine.address();
    final TestTarget near = TestTarget.of(memory.hostTest());
    final TestTarget far = gpu ? gpuTarget() : TestTarget.NONE;
    final ByteBuffer rest =
        ByteBuffer.allocate(1 + 4 + own.length + near.encodedBytes() + far.encodedBytes());
    rest.put((byte) (engine.rdma() ? 1 : 0));
    Wire.put(rest, own);
    near.write(rest);
    far.write(rest);
    return rest.array();
  }

  /** None if there is no memory for it now, or UCX cannot register it: it is only a test. */
  private TestTarget gpuTarget() {
    try {
      final TestRange range = memory.gpuTest();
      return range == null ? TestTarget.NONE : TestTarget.of(range);
    } catch (final ZerohopException e) {
      ShuffleCode.GPU_NOT_OFFERED
          .says("executors of other nodes cannot read this GPU's memory; its blocks are sent")
          .because(e)
          .warn(LOG);
      return TestTarget.NONE;
    }
  }

  @Override
  public void answer(
      final byte kind,
      final ByteBuffer question,
      final ServedReader reader,
      final Consumer<ByteBuffer> answer) {
    switch (kind) {
      case GetQuestions.KEYS -> answer.accept(keys(question));
      case GetQuestions.HANDLES -> answer.accept(handles(question));
      case GetQuestions.EVENTS ->
          answer.accept(Wire.granted(Long.BYTES).putLong(engine.events()).flip());
      default -> throw new IllegalArgumentException("there is no such request");
    }
  }

  private ByteBuffer keys(final ByteBuffer question) {
    final int count = segmentCount(question);
    final byte[][] keys = new byte[count][];
    final long[] addresses = new long[count];
    int bytes = 0;
    for (int i = 0; i < count; i++) {
      final SegmentMemory segment = memory.segments().memory(question.getLong());
      final byte[] key = segment == null ? null : memory.segments().key(segment);
      keys[i] = key == null ? new byte[0] : key;
      addresses[i] = segment == null ? 0 : segment.address();
      bytes += 8 + 4 + keys[i].length;
    }
    final ByteBuffer answer = Wire.granted(bytes);
    for (int i = 0; i < count; i++) {
      answer.putLong(addresses[i]);
      Wire.put(answer, keys[i]);
    }
    return answer.flip();
  }

  private static int segmentCount(final ByteBuffer question) {
    final int count = question.getInt();
    if (count < 0 || count > question.remaining() / Long.BYTES) {
      throw new IllegalArgumentException("the request is truncated");
    }
    return count;
  }

  /** The reader holds leases on the segments; one that is gone all the same has no handle. */
  private ByteBuffer handles(final ByteBuffer question) {
    final FabricTarget[] targets = new FabricTarget[segmentCount(question)];
    int bytes = 0;
    for (int i = 0; i < targets.length; i++) {
      final SegmentMemory segment = memory.segments().memory(question.getLong());
      targets[i] = fabricTarget(segment);
      bytes += targets[i].encodedBytes();
    }
    final ByteBuffer answer = Wire.granted(bytes);
    for (final FabricTarget target : targets) {
      target.write(answer);
    }
    return answer.flip();
  }

  /** A handle that is not available is no reason to fail: the reader has other paths. */
  private static FabricTarget fabricTarget(final @Nullable SegmentMemory segment) {
    try {
      return FabricTarget.of(segment == null ? null : segment.segment().exportFabric());
    } catch (final ZerohopException e) {
      ShuffleCode.FABRIC_NOT_OFFERED
          .says("a segment cannot be read over the NVLink fabric")
          .at(String.valueOf(segment))
          .because(e)
          .warn(LOG);
      return FabricTarget.of(null);
    }
  }
}
