package io.zerohop.shuffle.transport.remote.reader;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.transport.Transport.Sink;
import io.zerohop.shuffle.transport.remote.memory.Slabs;
import io.zerohop.shuffle.transport.remote.wire.Wire.Questions;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/** A window that its owner sends to the host, where it copies what lies in GPU memory before. */
public final class SentTransfer extends RemoteTransfer {
  private final MessageReceiver arrivals;

  /** What takes the messages, if it comes to that. */
  @GuardedBy("this")
  private MessageReceiver.@Nullable Waiting messages;

  /**
   * Blocks that are to come.
   *
   * @param blocks of one shuffle, each reported to the sink once
   * @param slabs what they are received in
   * @param executor makes steps that take some time
   */
  public SentTransfer(
      final RemotePeer peer,
      final List<Block> blocks,
      final Sink sink,
      final Slabs slabs,
      final MessageReceiver arrivals,
      final Executor executor) {
    super(peer, blocks, sink, slabs, executor);
    this.arrivals = arrivals;
  }

  @Override
  protected void receive() {
    final ReceiveBuffers to = receiveInto(ReceiveBuffers.onHost(extents(), slabs()));
    if (to == null) {
      return;
    }
    final MessageReceiver.Waiting all;
    try {
      all = arrivals.expect(to.hostSlab(), to.host().bytes(), this::progress);
    } finally {
      to.release();
    }
    if (!expect(all)) {
      all.end();
      return;
    }
    ask(Questions.send(lease(), all.id()))
        .thenAccept(answer -> all.total(answer.getLong()))
        .thenCompose(sent -> all.complete())
        .thenRunAsync(this::succeed, executor())
        .exceptionally(this::failed);
  }

  /** False if this has ended. */
  private synchronized boolean expect(final MessageReceiver.Waiting all) {
    if (hasEnded()) {
      return false;
    }
    messages = all;
    return true;
  }

  private synchronized MessageReceiver.@Nullable Waiting expected() {
    return messages;
  }

  @Override
  protected void ending() {
    final MessageReceiver.Waiting all = expected();
    if (all != null) {
      all.end();
    }
  }

  @Override
  protected boolean isDamaged(final int block, final ReceiveBuffers received) {
    final MessageReceiver.Waiting all =
        Objects.requireNonNull(expected(), "no messages were expected");
    for (int extent = extents().begin(block); extent < extents().end(block); extent++) {
      final long place = received.host().place(extent);
      if (all.isDamaged(place, place + extents().length(extent))) {
        return true;
      }
    }
    return false;
  }
}
