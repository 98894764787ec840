package io.zerohop.shuffle.transport.remote;

import io.zerohop.shuffle.transport.remote.Carrier.MessageSizes;
import io.zerohop.shuffle.transport.remote.Sends.MessageSender.Message;
import io.zerohop.shuffle.transport.remote.ServedReader.ServedLease;
import io.zerohop.shuffle.transport.remote.Slabs.Slab;
import io.zerohop.shuffle.transport.remote.Wire.RemoteExtents.ReceiveLayout;
import java.util.ArrayList;
import java.util.List;
import org.agrona.UnsafeAccess;

/**
 * The messages that bring a lease's blocks to the reader. A message costs some microseconds at both
 * ends whatever its size, so runs of few bytes that arrive one behind the other are copied together
 * first; long ones are sent from where they lie. Owns the copies; for one thread.
 */
final class Packing implements AutoCloseable {
  /** Runs from this size on go by themselves. */
  private static final int LONG_RUN_BYTES = 128 << 10;

  private final ServedLease lease;
  private final ReceiveLayout layout;
  private final Slabs slabs;
  private final MessageSizes sizes;
  private final List<Message> messages = new ArrayList<>();
  private final List<Slab> copies = new ArrayList<>();

  /**
   * @param lease has its blocks on the host before there are messages
   */
  Packing(final ServedLease lease, final Slabs slabs, final MessageSizes sizes) {
    this.lease = lease;
    this.layout = new ReceiveLayout(lease.extents(), ReceiveLayout.Part.ALL);
    this.slabs = slabs;
    this.sizes = sizes;
  }

  List<Message> messages() {
    int first = 0;
    for (int run = 0; run < layout.runs(); run++) {
      final boolean isLong = bytes(run) >= LONG_RUN_BYTES && isWhole(run);
      if (isLong || end(run) - begin(first) > sizes.longest()) {
        pack(first, run);
        first = run;
      }
      if (isLong) {
        cut(begin(run), lease.address(layout.first(run)), bytes(run));
        first = run + 1;
      }
    }
    pack(first, layout.runs());
    return messages;
  }

  /** Extents in a copy that was made of GPU memory have not the neighbours that they had there. */
  private boolean isWhole(final int run) {
    return layout.runLength(run) == 1 || !lease.extents().isOnGpu(layout.first(run));
  }

  private long begin(final int run) {
    return run == layout.runs() ? layout.bytes() : layout.place(layout.first(run));
  }

  private int bytes(final int run) {
    return layout.runBytes(run);
  }

  private long end(final int run) {
    return begin(run) + bytes(run);
  }

  /** Bytes that lie together, as messages that are not too long. */
  private void cut(final long offset, final long address, final long bytes) {
    for (long done = 0; done < bytes; done += sizes.longest()) {
      final long piece = Math.min(sizes.longest(), bytes - done);
      messages.add(new Message(offset + done, address + done, piece));
    }
  }

  private void pack(final int firstRun, final int endRun) {
    if (firstRun == endRun) {
      return;
    }
    final long begin = begin(firstRun);
    final long bytes = end(endRun - 1) - begin;
    final Slab copy = slabs.take(bytes);
    copies.add(copy);
    layout.forEach(
        firstRun,
        endRun,
        extent ->
            UnsafeAccess.UNSAFE.copyMemory(
                lease.address(extent),
                copy.address() + layout.place(extent) - begin,
                lease.extents().length(extent)));
    cut(begin, copy.address(), bytes);
  }

  /** Frees the copies; no message may be under way. */
  @Override
  public void close() {
    copies.forEach(Slab::release);
    copies.clear();
  }
}
