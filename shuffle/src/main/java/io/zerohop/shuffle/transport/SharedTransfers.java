package io.zerohop.shuffle.transport;

import io.zerohop.shuffle.Block;
import io.zerohop.shuffle.fetch.BlockSource;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Readers of one executor that want the same block at the same time share one transfer, as those do
 * who read one side of a skewed join once for each part of the other. A block that is asked for
 * while it is on its way, or while somebody still has it, is not fetched again. Thread safe.
 */
public final class SharedTransfers implements StagedTransport {
  private static final Duration PATIENCE = Duration.ofMinutes(1);

  private final StagedTransport transport;
  private final long patienceNanos;

  /** Those that are on their way or held; its monitor guards them, and is held for no call. */
  private final Map<Key, Transfer> transfers = new HashMap<>();

  /**
   * @param transport fetches what nobody has; its payloads can be opened by several threads
   */
  public SharedTransfers(final StagedTransport transport) {
    this(transport, PATIENCE);
  }

  /**
   * @param patience after which a newcomer asks once more for what is still on its way, so that one
   *     lost answer does not keep everybody from the block
   */
  SharedTransfers(final StagedTransport transport, final Duration patience) {
    this.transport = transport;
    this.patienceNanos = patience.toNanos();
  }

  private record Key(Object owner, Block block) {}

  private static final class Transfer {
    private final List<Sink> waiting = new ArrayList<>();
    private StagedPayload payload;
    private int holders;
    private long askedAt = System.nanoTime();

    boolean isOverdue(final long patienceNanos) {
      return payload == null && System.nanoTime() - askedAt > patienceNanos;
    }
  }

  /** Never throws: what cannot be asked for is reported as failed to all who wait for it. */
  @Override
  public void fetch(final BlockSource source, final List<Block> blocks, final Sink sink) {
    final List<Block> missing = new ArrayList<>();
    for (final Block block : blocks) {
      final Key key = new Key(source.address(), block);
      final Transfer transfer;
      final boolean isThere;
      synchronized (transfers) {
        final boolean isNew = !transfers.containsKey(key);
        transfer = transfers.computeIfAbsent(key, absent -> new Transfer());
        if (isNew || transfer.isOverdue(patienceNanos)) {
          transfer.askedAt = System.nanoTime();
          missing.add(block);
        }
        isThere = transfer.payload != null;
        if (isThere) {
          transfer.holders++;
        } else {
          transfer.waiting.add(sink);
        }
      }
      if (isThere) {
        sink.arrived(block, new Share(key, transfer));
      }
    }
    if (missing.isEmpty()) {
      return;
    }
    final Sink all = new SharedSink(source.address());
    try {
      transport.fetch(source, missing, all);
    } catch (final RuntimeException e) {
      missing.forEach(block -> all.failed(block, e));
    }
  }

  /** Transfers that are on their way or held. */
  public int open() {
    synchronized (transfers) {
      return transfers.size();
    }
  }

  /** Hands on what arrives for one owner's blocks. */
  private final class SharedSink implements Sink {
    private final Object owner;

    SharedSink(final Object owner) {
      this.owner = owner;
    }

    @Override
    public void arrived(final Block block, final StagedPayload payload) {
      final Key key = new Key(owner, block);
      final Transfer transfer;
      final List<Sink> sinks;
      synchronized (transfers) {
        transfer = waiting(key);
        sinks = transfer == null ? List.of() : List.copyOf(transfer.waiting);
        if (transfer != null) {
          transfer.waiting.clear();
          transfer.payload = payload;
          transfer.holders = sinks.size();
        }
      }
      if (sinks.isEmpty()) {
        payload.release(); // It was reported before: somebody had asked twice.
      }
      sinks.forEach(sink -> sink.arrived(block, new Share(key, transfer)));
    }

    @Override
    public void failed(final Block block, final Throwable cause) {
      final Key key = new Key(owner, block);
      final Transfer transfer;
      synchronized (transfers) {
        transfer = waiting(key);
        if (transfer == null) {
          return;
        }
        transfers.remove(key);
      }
      transfer.waiting.forEach(sink -> sink.failed(block, cause));
    }

    /** A transfer that is on its way; null if it has been reported. */
    private Transfer waiting(final Key key) {
      final Transfer transfer = transfers.get(key);
      return transfer == null || transfer.payload != null ? null : transfer;
    }
  }

  /** One holder's part of a payload. */
  private final class Share implements StagedPayload {
    private final Key key;
    private final Transfer transfer;

    Share(final Key key, final Transfer transfer) {
      this.key = key;
      this.transfer = transfer;
    }

    @Override
    public long bytes() {
      return transfer.payload.bytes();
    }

    @Override
    public InputStream open() throws IOException {
      return transfer.payload.open();
    }

    @Override
    public void release() {
      final boolean last;
      synchronized (transfers) {
        transfer.holders--;
        last = transfer.holders == 0;
        if (last) {
          transfers.remove(key, transfer);
        }
      }
      if (last) {
        transfer.payload.release();
      }
    }
  }
}
