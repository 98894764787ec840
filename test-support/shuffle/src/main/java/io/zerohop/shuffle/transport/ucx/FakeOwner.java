package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.host.HostDevice;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.shuffle.transport.remote.Carrier.Completion;
import io.zerohop.shuffle.transport.remote.Wire;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxMemory;
import io.zerohop.shuffle.transport.ucx.memory.GetQuestions;
import io.zerohop.shuffle.transport.ucx.memory.GetQuestions.TestTarget;
import io.zerohop.shuffle.transport.ucx.memory.PatternMemory;
import io.zerohop.shuffle.transport.ucx.memory.TestRange;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.agrona.concurrent.UnsafeBuffer;

/** An owner that is asked for events of its UCX, which each get of a peer's may add to. */
final class FakeOwner implements ControlLink, UcxEndpoint {
  private static final Duration LIMIT = Duration.ofSeconds(10);
  private static final long INCARNATION = 4711;

  private final HostDevice device = new HostDevice();
  private final PatternMemory memory = PatternMemory.segment(device, TestRange.BYTES);

  /** What is got of it. */
  final TestTarget target = new TestTarget(memory.address(), TestRange.BYTES, new byte[1]);

  /** Gets from this size on bring a wrong byte at their end. */
  long wrongFrom = Long.MAX_VALUE;

  /** Gets from this size on write a byte more than was asked for. */
  long tooLongFrom = Long.MAX_VALUE;

  /** Events that a get makes there. */
  int perGet;

  /** Events that others make between two questions. */
  int perQuestion;

  /** Questions after which they are done. */
  int busyQuestions = Integer.MAX_VALUE;

  /** Gets that have come. */
  int gets;

  private long events;

  FakeOwner() {
    memory.fill(INCARNATION);
  }

  /** What reads of it. */
  TestReads reads() {
    final UcxPeer peer = new UcxPeer("7", this, Clock.system());
    peer.endpoint(this);
    return new TestReads(peer, INCARNATION, TestRange.BYTES, LIMIT);
  }

  /** Memory for test reads, which the caller gives back. */
  TestRange.Destination destination() {
    return new TestRange(null, device, Tier.HOST, 0).destination(TestRange.BYTES);
  }

  @Override
  public CompletableFuture<ByteBuffer> ask(final ByteBuffer question) {
    if (question.get() != GetQuestions.EVENTS) {
      throw new AssertionError("another question was expected");
    }
    events += busyQuestions-- > 0 ? perQuestion : 0;
    return CompletableFuture.completedFuture(
        ByteBuffer.allocate(1 + Long.BYTES).put(Wire.GRANTED).putLong(events).flip());
  }

  @Override
  public void get(
      final byte[] key,
      final long remoteAddress,
      final long localAddress,
      final long bytes,
      final UcxMemory gpu,
      final Completion done) {
    gets++;
    events += perGet;
    final UnsafeBuffer to = new UnsafeBuffer(localAddress, TestRange.BYTES);
    to.putBytes(0, new UnsafeBuffer(remoteAddress, TestRange.BYTES), 0, (int) bytes);
    if (bytes >= wrongFrom) {
      to.putByte((int) bytes - 1, (byte) ~to.getByte((int) bytes - 1));
    }
    if (bytes >= tooLongFrom) {
      to.putByte((int) bytes, (byte) 0);
    }
    done.done(null);
  }

  @Override
  public boolean alive() {
    return true;
  }

  @Override
  public void onClosed(final Runnable action) {}

  @Override
  public void close() {
    memory.close();
    device.close();
  }
}
