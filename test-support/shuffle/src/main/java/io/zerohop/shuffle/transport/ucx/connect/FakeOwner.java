package io.zerohop.shuffle.transport.ucx.connect;

import io.zerohop.device.host.HostDevice;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.ControlLink;
import io.zerohop.shuffle.transport.remote.carrier.Completion;
import io.zerohop.shuffle.transport.remote.memory.Slab;
import io.zerohop.shuffle.transport.remote.memory.Slabs;
import io.zerohop.shuffle.transport.remote.wire.Wire;
import io.zerohop.shuffle.transport.ucx.engine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.engine.UcxMemory;
import io.zerohop.shuffle.transport.ucx.memory.TestRange;
import io.zerohop.shuffle.transport.ucx.reader.UcxPeer;
import io.zerohop.shuffle.transport.ucx.wire.GetQuestions;
import io.zerohop.shuffle.transport.ucx.wire.TestTarget;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;

/** An owner that is asked for events of its UCX, which each get of a peer's may add to. */
final class FakeOwner implements ControlLink, UcxEndpoint {
  private static final Duration LIMIT = Duration.ofSeconds(10);
  private static final long MEMORY = TestRange.BYTES;
  static final TestTarget TARGET = new TestTarget(1, MEMORY, new byte[1]);

  private final HostDevice device = new HostDevice();
  private final Slabs slabs = new Slabs(device::hostBuffer, MEMORY, Clock.system());

  /** Events that a get makes there. */
  int perGet;

  /** Events that others make between two questions. */
  int perQuestion;

  /** Questions after which they are done. */
  int busyQuestions = Integer.MAX_VALUE;

  /** Gets that have come. */
  int gets;

  private long events;

  /** What reads of it. */
  TestReads reads() {
    final UcxPeer peer = new UcxPeer("7", this, Clock.system());
    peer.endpoint(this);
    return new TestReads(peer, LIMIT);
  }

  /** Memory for test reads, which the caller gives back. */
  Slab slab() {
    return slabs.take(MEMORY);
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
    slabs.close();
  }
}
