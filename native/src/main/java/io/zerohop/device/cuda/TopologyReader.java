package io.zerohop.device.cuda;

import io.zerohop.device.Topology;
import io.zerohop.device.posix.NativeLibrary;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * Creates a {@link Topology} from a source of links, by the rule of PyTorch's IntraNodeComm. A link
 * to a GPU counts for that pair. A link to a switch counts for every GPU with switch links, as many
 * as the GPU of the pair with fewer has.
 */
public final class TopologyReader {
  /** More than any GPU has. */
  static final int MAX_LINKS = 36;

  private TopologyReader() {}

  /** The methods of {@link Nvml} that are read; tests simulate machines. */
  interface Links {
    int count();

    /** Absent if the GPU does not answer, as for the other texts. */
    @Nullable String uuid(int gpu);

    @Nullable String busId(int gpu);

    int linkType(int gpu, int link);

    @Nullable String linkBusId(int gpu, int link);

    boolean canRead(int from, int to);

    @Nullable String fabric(int gpu);
  }

  /** A GPU that answered; asked once, since one that is lost may not answer again. */
  private record Answered(int gpu, String uuid, String busId) {}

  /** The machine's topology; one without GPUs where there is no NVML. */
  public static Topology read() {
    return Nvml.present() ? read(new NvmlLinks()) : Topology.NONE;
  }

  static Topology read(final Links source) {
    final List<Answered> order = new ArrayList<>();
    for (int gpu = 0; gpu < source.count(); gpu++) {
      final String uuid = source.uuid(gpu);
      final String busId = source.busId(gpu);
      if (uuid != null && busId != null) {
        order.add(new Answered(gpu, uuid, busId));
      }
    }
    order.sort(Comparator.comparing(answered -> busKey(answered.busId())));
    final int count = order.size();
    final int[][] links = new int[count][count];
    final int[] toSwitch = new int[count];
    final boolean[][] peerAccess = new boolean[count][count];
    final List<Topology.Gpu> gpus = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      final Answered answered = order.get(i);
      final int gpu = answered.gpu();
      final String fabric = source.fabric(gpu);
      gpus.add(new Topology.Gpu(answered.uuid(), answered.busId(), fabric == null ? "" : fabric));
      countLinks(source, order, i, links, toSwitch);
      for (int j = 0; j < count; j++) {
        peerAccess[i][j] = i == j || source.canRead(gpu, order.get(j).gpu());
      }
    }
    for (int i = 0; i < count; i++) {
      for (int j = 0; j < count; j++) {
        if (i != j) {
          links[i][j] += Math.min(toSwitch[i], toSwitch[j]);
        }
      }
    }
    return new Topology(gpus, links, peerAccess);
  }

  private static void countLinks(
      final Links source,
      final List<Answered> order,
      final int row,
      final int[][] links,
      final int[] toSwitch) {
    final int gpu = order.get(row).gpu();
    for (int link = 0; link < MAX_LINKS; link++) {
      final int type = source.linkType(gpu, link);
      if (type == Nvml.SWITCH) {
        toSwitch[row]++;
      } else if (type == Nvml.GPU) {
        final String remote = source.linkBusId(gpu, link);
        for (int column = 0; column < order.size() && remote != null; column++) {
          if (busKey(order.get(column).busId()).equals(busKey(remote))) {
            links[row][column]++;
          }
        }
      }
    }
  }

  /** Domains are written with four or eight digits, in either case. */
  private static String busKey(final String busId) {
    final String text = busId.toLowerCase(Locale.ROOT);
    final int colon = text.indexOf(':');
    return colon <= 0 ? text : "0".repeat(Math.max(0, 8 - colon)) + text;
  }

  private static final class NvmlLinks implements Links {
    @Override
    public int count() {
      return Nvml.count();
    }

    @Override
    public @Nullable String uuid(final int gpu) {
      return Nvml.uuid(gpu);
    }

    @Override
    public @Nullable String busId(final int gpu) {
      return Nvml.busId(gpu);
    }

    @Override
    public int linkType(final int gpu, final int link) {
      return Nvml.linkType(gpu, link);
    }

    @Override
    public @Nullable String linkBusId(final int gpu, final int link) {
      return Nvml.linkBusId(gpu, link);
    }

    @Override
    public boolean canRead(final int from, final int to) {
      return Nvml.peerStatus(from, to) == 0;
    }

    @Override
    public @Nullable String fabric(final int gpu) {
      return Nvml.fabric(gpu);
    }
  }

  /** NVML's view of the GPUs of this machine, those that CUDA_VISIBLE_DEVICES hides included. */
  static final class Nvml {
    /** The other end of a link is a GPU. */
    static final int GPU = 0;

    /** The other end of a link is an NVSwitch. */
    static final int SWITCH = 2;

    /** No active link. */
    static final int NONE = -1;

    private static final List<String> LIBRARIES =
        List.of(
            "libnvidia-ml.so.1",
            "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
            "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1",
            "/usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1",
            "/usr/lib64/libnvidia-ml.so.1",
            "/usr/lib/wsl/lib/libnvidia-ml.so.1");

    private static @Nullable Boolean present;

    private Nvml() {}

    /**
     * Whether the library is there; loads it once. Before it was true, nothing else may be called.
     */
    static synchronized boolean present() {
      if (present == null) {
        NativeLibrary.require();
        present = LIBRARIES.stream().anyMatch(Nvml::open);
      }
      return present;
    }

    private static native boolean open(String path);

    static native int count();

    /** Absent if the GPU does not answer, as for the other texts. */
    static native @Nullable String uuid(int device);

    static native @Nullable String busId(int device);

    /** {@link #GPU}, {@link #SWITCH}, another of NVML's device types, or {@link #NONE}. */
    static native int linkType(int device, int link);

    static native @Nullable String linkBusId(int device, int link);

    /** 0 if the first GPU can read the memory of the second. */
    static native int peerStatus(int from, int to);

    static native @Nullable String fabric(int device);
  }
}
