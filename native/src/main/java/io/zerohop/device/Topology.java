package io.zerohop.device;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * The GPUs of a node and the links between them, as one process sees them. Immutable.
 *
 * @param gpus in the order of their bus addresses
 * @param links links between each pair, by index; an NVSwitch link counts for every GPU that has
 *     some, as many as the pair has in common
 * @param peerAccess whether the GPU of a row can read the memory of that of a column at all
 */
public record Topology(List<Gpu> gpus, int[][] links, boolean[][] peerAccess) {
  /** Of a node without GPUs, or without NVML. */
  public static final Topology NONE = new Topology(List.of(), new int[0][0], new boolean[0][0]);

  private static final int CUBE_MESH_GPUS = 8;
  private static final int CUBE_MESH_NEIGHBOURS = 4;

  /**
   * One GPU.
   *
   * @param uuid names it the same way in every process of the node
   * @param busId its PCI address
   * @param fabric cluster and clique of a multi-node NVLink fabric; empty if it is in none
   */
  public record Gpu(String uuid, String busId, String fabric) {}

  /** The shape of the links. */
  public enum Shape {
    /** Every GPU has links to every other. */
    FULLY_CONNECTED,
    /** Eight GPUs with links to four others each. */
    HYBRID_CUBE_MESH,
    /** Anything else. */
    UNKNOWN
  }

  /** The kind of access of one GPU to the memory of another. */
  public enum Reach {
    /** It is the same GPU. */
    SAME,
    /** By links of their own. */
    NVLINK,
    /** Over the PCI bus, without the host. */
    PCIE,
    /** Only through host memory: neither maps the other's memory. */
    HOST
  }

  /** One executor and its GPU, for {@link #problems}. */
  public record View(String executorId, String gpuUuid, String fingerprint) {}

  /** Copies the list; the matrices must not be changed any more. */
  public Topology {
    gpus = List.copyOf(gpus);
  }

  /** The shape of the links; a single GPU is connected to all others. */
  public Shape shape() {
    final int count = gpus.size();
    int fewest = Integer.MAX_VALUE;
    int most = 0;
    for (int gpu = 0; gpu < count; gpu++) {
      int neighbours = 0;
      for (int other = 0; other < count; other++) {
        neighbours += other != gpu && links[gpu][other] > 0 ? 1 : 0;
      }
      fewest = Math.min(fewest, neighbours);
      most = Math.max(most, neighbours);
    }
    if (count > 0 && fewest == count - 1) {
      return Shape.FULLY_CONNECTED;
    }
    return count == CUBE_MESH_GPUS && fewest == CUBE_MESH_NEIGHBOURS && most == fewest
        ? Shape.HYBRID_CUBE_MESH
        : Shape.UNKNOWN;
  }

  /** How {@code reader} reaches {@code owner}; HOST if either is not of this node. */
  public Reach reach(final String reader, final String owner) {
    final int from = indexOf(reader);
    final int to = indexOf(owner);
    if (from < 0 || to < 0) {
      return Reach.HOST;
    }
    if (from == to) {
      return Reach.SAME;
    }
    if (!peerAccess[from][to]) {
      return Reach.HOST;
    }
    return links[from][to] > 0 ? Reach.NVLINK : Reach.PCIE;
  }

  /** Returns how many NVLinks there are between two GPUs; 0 if either is not of this node. */
  public int linksBetween(final String reader, final String owner) {
    final int from = indexOf(reader);
    final int to = indexOf(owner);
    return from < 0 || to < 0 ? 0 : links[from][to];
  }

  private int indexOf(final String uuid) {
    for (int i = 0; i < gpus.size(); i++) {
      if (gpus.get(i).uuid().equals(uuid)) {
        return i;
      }
    }
    return -1;
  }

  /** The same text in every process that sees the same GPUs and links. */
  public String fingerprint() {
    final StringBuilder text = new StringBuilder();
    for (int gpu = 0; gpu < gpus.size(); gpu++) {
      text.append(gpus.get(gpu).uuid()).append('[');
      for (int other = 0; other < gpus.size(); other++) {
        text.append(links[gpu][other]).append(peerAccess[gpu][other] ? "p " : " ");
      }
      text.append("] ");
    }
    return String.format(
        Locale.ROOT, "%d GPUs, %s, %08x", gpus.size(), shape(), text.toString().hashCode());
  }

  /**
   * Returns what is odd about the executors of one node: two that share a GPU, and views that
   * disagree. Neither is an error: shuffles go on, by slower paths if need be.
   */
  public static List<Message> problems(final List<View> executors) {
    final List<Message> problems = new ArrayList<>();
    final Map<String, List<String>> byGpu = new TreeMap<>();
    final Map<String, List<String>> byFingerprint = new TreeMap<>();
    for (final View view : executors) {
      byGpu.computeIfAbsent(view.gpuUuid(), gpu -> new ArrayList<>()).add(view.executorId());
      byFingerprint
          .computeIfAbsent(view.fingerprint(), text -> new ArrayList<>())
          .add(view.executorId());
    }
    byGpu.forEach(
        (gpu, ids) -> {
          if (ids.size() > 1) {
            Collections.sort(ids);
            problems.add(
                DeviceCode.GPU_SHARED
                    .says("executors share a GPU and its memory")
                    .at("executors " + String.join(", ", ids) + ", GPU " + gpu)
                    .remedy("set spark.executor.resource.gpu.amount=1, so that each has its own"));
          }
        });
    if (byFingerprint.size() > 1) {
      final List<String> views = new ArrayList<>();
      byFingerprint.forEach(
          (text, ids) -> {
            Collections.sort(ids);
            views.add("executors " + String.join(", ", ids) + " see " + text);
          });
      problems.add(
          DeviceCode.GPUS_SEEN_DIFFER
              .says(
                  "the executors of this node see different GPUs or links; batches of pairs that"
                      + " cannot map each other's memory go through host memory or are sent")
              .because(String.join(", ", views))
              .remedy("show all executors of a node the same GPUs"));
    }
    return problems;
  }
}
