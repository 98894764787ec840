package io.zerohop.gpu;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeMap;

/**
 * What was copied between two snapshots, in all executors, and what the GPUs' links have moved
 * meanwhile.
 */
final class CopyTraffic {
  /** Copies with the host at neither end. */
  private static final Set<String> WITHIN_GPUS = Set.of("DtoD", "PtoP", "DtoA", "AtoD", "AtoA");

  private final Map<String, Copies> copies = new TreeMap<>();
  private final Map<String, JsonNode> gpusBefore = new TreeMap<>();
  private final Map<String, JsonNode> gpusAfter = new TreeMap<>();
  private long dropped;

  /** Copies of one kind, from one kind of memory to another. */
  private static final class Copies {
    private final JsonNode what;
    private final long[] sizes;
    private long count;
    private long bytes;

    Copies(final JsonNode what) {
      this.what = what;
      this.sizes = new long[what.get("sizes").size()];
    }

    String kind() {
      return what.get("kind").asText();
    }

    void add(final JsonNode line, final int sign) {
      count += sign * line.get("copies").asLong();
      bytes += sign * line.get("bytes").asLong();
      for (int i = 0; i < sizes.length; i++) {
        sizes[i] += sign * line.get("sizes").get(i).asLong();
      }
    }

    Map<String, Object> row() {
      final Map<String, Object> row = new LinkedHashMap<>();
      row.put("kind", kind());
      row.put("from", what.get("from").asText());
      row.put("to", what.get("to").asText());
      row.put("copies", count);
      row.put("bytes", bytes);
      row.put("copies_by_size", sizes);
      return row;
    }
  }

  private CopyTraffic() {}

  /**
   * @throws IllegalStateException if an executor was lost or came in between
   */
  static CopyTraffic between(final CopySnapshot before, final CopySnapshot after) {
    if (!before.executors().keySet().equals(after.executors().keySet())) {
      throw new IllegalStateException(
          "executors changed: " + before.executors().keySet() + ", " + after.executors().keySet());
    }
    final CopyTraffic traffic = new CopyTraffic();
    before.executors().values().forEach(line -> traffic.add(line, -1, traffic.gpusBefore));
    after.executors().values().forEach(line -> traffic.add(line, 1, traffic.gpusAfter));
    return traffic;
  }

  private void add(final JsonNode line, final int sign, final Map<String, JsonNode> gpus) {
    dropped += sign * line.get("dropped").asLong();
    for (final JsonNode total : line.get("copies")) {
      final String key =
          total.get("kind").asText() + total.get("from").asText() + ">" + total.get("to").asText();
      copies.computeIfAbsent(key, ignored -> new Copies(total)).add(total, sign);
    }
    // Every executor may see every GPU; one of them tells.
    line.get("gpus").forEach(gpu -> gpus.putIfAbsent(gpu.get("uuid").asText(), gpu));
  }

  /** How many copies CUPTI could not tell of. */
  long dropped() {
    return dropped;
  }

  /** Bytes by CUPTI's kind of copy. */
  Map<String, Long> bytesByKind() {
    final Map<String, Long> bytes = new TreeMap<>();
    copies.values().forEach(total -> bytes.merge(total.kind(), total.bytes, Long::sum));
    bytes.values().removeIf(sum -> sum == 0);
    return bytes;
  }

  /** Bytes of one kind of copy. */
  long bytes(final String kind) {
    return bytesByKind().getOrDefault(kind, 0L);
  }

  /** Bytes of copies that have the host at an end, or whose kind is not known. */
  long hostBytes() {
    return copies.values().stream()
        .filter(total -> !WITHIN_GPUS.contains(total.kind()))
        .mapToLong(total -> total.bytes)
        .sum();
  }

  /**
   * How far a counter of all GPUs has come, in the counter's unit; empty if a GPU does not tell.
   *
   * @param name as {@code link_counter.c} calls it
   */
  OptionalLong links(final String name) {
    long sum = 0;
    for (final Map.Entry<String, JsonNode> gpu : gpusAfter.entrySet()) {
      final JsonNode before = gpusBefore.getOrDefault(gpu.getKey(), gpu.getValue()).get(name);
      final JsonNode after = gpu.getValue().get(name);
      if (before.isNull() || after.isNull()) {
        return OptionalLong.empty();
      }
      final long step = after.asLong() - before.asLong();
      sum += step < 0 ? step + (1L << 32) : step; // A narrow counter has wrapped.
    }
    return gpusAfter.isEmpty() ? OptionalLong.empty() : OptionalLong.of(sum);
  }

  /** All that was copied, one row for each kind of copy and of memory. */
  List<Map<String, Object>> rows() {
    final List<Map<String, Object>> rows = new ArrayList<>();
    copies.values().stream().filter(total -> total.count > 0).forEach(t -> rows.add(t.row()));
    return rows;
  }
}
