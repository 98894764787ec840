package io.zerohop.shuffle.transport.ucx.reader;

import io.zerohop.shuffle.transport.remote.carrier.Completion;
import io.zerohop.shuffle.transport.remote.memory.Slab;
import io.zerohop.shuffle.transport.remote.reader.ReceiveBuffers;
import io.zerohop.shuffle.transport.remote.wire.ReceiveLayout;
import io.zerohop.shuffle.transport.remote.wire.RemoteExtents;
import io.zerohop.shuffle.transport.ucx.fabric.FabricCopy;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;

/**
 * What a transfer's extents come to: the segments that they are in, whether these can be got, and
 * the gets and copies by which. Holds nothing; thread safe, as far as its owner's keys are.
 */
final class TransferPieces {
  private final RemoteExtents extents;
  private final UcxPeer peer;

  /**
   * @param extents as the owner has told them; not changed
   * @param peer whose keys are known
   */
  TransferPieces(final RemoteExtents extents, final UcxPeer peer) {
    this.extents = extents;
    this.peer = peer;
  }

  /** The segments in the owner's GPU memory. */
  Set<Long> gpuSegments() {
    final Set<Long> segments = new LinkedHashSet<>();
    IntStream.range(0, extents.size())
        .filter(extents::isOnGpu)
        .forEach(extent -> segments.add(extents.segment(extent)));
    return segments;
  }

  /**
   * The segments whose keys have to be asked for.
   *
   * @param gpuByFabric whether those in GPU memory need none
   */
  Set<Long> unknownKeys(final boolean gpuByFabric) {
    final Set<Long> unknown = new LinkedHashSet<>();
    for (int i = 0; i < extents.size(); i++) {
      if (!(gpuByFabric && extents.isOnGpu(i)) && peer.key(extents.segment(i)) == null) {
        unknown.add(extents.segment(i));
      }
    }
    return unknown;
  }

  /**
   * Whether all can be got that has to be.
   *
   * @param gpuByFabric whether what is in GPU memory need not
   */
  boolean haveKeys(final boolean gpuByFabric) {
    for (int i = 0; i < extents.size(); i++) {
      if (!(gpuByFabric && extents.isOnGpu(i)) && !hasKey(extents.segment(i))) {
        return false;
      }
    }
    return true;
  }

  /** A segment is gone if the owner has not held the lease until now. */
  private boolean hasKey(final long segment) {
    final UcxPeer.SegmentKey known = peer.key(segment);
    return known != null && known.key().length > 0;
  }

  /**
   * Gets of what a layout receives.
   *
   * @param to where
   * @param wanted whether a get that has not begun shall begin
   * @param done told of each
   */
  List<Gets.Get> gets(
      final ReceiveLayout layout,
      final Slab to,
      final BooleanSupplier wanted,
      final Completion done) {
    final List<Gets.Get> gets = new ArrayList<>();
    for (int run = 0; run < layout.runs(); run++) {
      final int first = layout.first(run);
      final UcxPeer.SegmentKey from = peer.key(extents.segment(first));
      final long bytes = layout.runBytes(run);
      for (long got = 0; got < bytes; got += ReceiveLayout.RUN_BYTES) {
        gets.add(
            new Gets.Get(
                from.key(),
                from.address() + extents.offset(first) + got,
                to,
                layout.place(first) + got,
                Math.min(ReceiveLayout.RUN_BYTES, bytes - got),
                wanted,
                done));
      }
    }
    return gets;
  }

  /** Copies of this GPU of all that is in the owner's GPU memory. */
  List<FabricCopy.Piece> copies(final ReceiveBuffers to) {
    final List<FabricCopy.Piece> copies = new ArrayList<>();
    for (int run = 0; run < to.gpu().runs(); run++) {
      final int first = to.gpu().first(run);
      copies.add(
          new FabricCopy.Piece(
              extents.segment(first),
              extents.offset(first),
              to.address(first),
              to.gpu().runBytes(run)));
    }
    return copies;
  }
}
