package io.zerohop.shuffle.fetch;

import io.zerohop.shuffle.block.Path;
import java.util.Collections;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/** What all fetchers of a node have handed out, by path. Thread safe. */
public final class FetchCounters {
  /** Blocks and bytes that went one way since the node's start. */
  public record MovedBlocks(long blocks, long bytes) {}

  private final LongAdder[] blocks = adders();
  private final LongAdder[] bytes = adders();

  private final LongAdder unready = new LongAdder();

  void add(final Path path, final long moreBlocks, final long moreBytes) {
    blocks[path.ordinal()].add(moreBlocks);
    bytes[path.ordinal()].add(moreBytes);
  }

  /** What went each way so far. */
  public Map<Path, MovedBlocks> moved() {
    final Map<Path, MovedBlocks> moved = new EnumMap<>(Path.class);
    for (final Path path : Path.values()) {
      moved.put(path, new MovedBlocks(blocks[path.ordinal()].sum(), bytes[path.ordinal()].sum()));
    }
    return Collections.unmodifiableMap(moved);
  }

  void foundUnready() {
    unready.increment();
  }

  /** Map outputs that readers found before their bytes were there. */
  public long unready() {
    return unready.sum();
  }

  private static LongAdder[] adders() {
    final LongAdder[] adders = new LongAdder[Path.values().length];
    for (int i = 0; i < adders.length; i++) {
      adders[i] = new LongAdder();
    }
    return adders;
  }
}
