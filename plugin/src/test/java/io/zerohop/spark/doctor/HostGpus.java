package io.zerohop.spark.doctor;

import io.zerohop.device.Message;
import io.zerohop.device.Topology;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.host.HostDevice;
import io.zerohop.spark.doctor.GpuCheck.Gpus;
import java.util.ArrayList;
import java.util.List;

/** GPUs whose memory is the host's, so that what maps and copies it is real. */
final class HostGpus implements Gpus {
  private final int count;
  private final int links;
  private final List<HostDevice> opened = new ArrayList<>();

  /** Why no GPU is there; null if they are. */
  Message absence;

  /** Why the jar has no kernels; null if it has. */
  Message missingKernels;

  /** What opening the last GPU fails with; null if it does not. */
  String refusal;

  /** Whether pairs have peer access. */
  boolean peers = true;

  HostGpus(final int count, final int links) {
    this.count = count;
    this.links = links;
  }

  @Override
  public Message absence() {
    return absence;
  }

  @Override
  public Message missingKernels() {
    return missingKernels;
  }

  @Override
  public int count() {
    return count;
  }

  @Override
  public Topology topology() {
    final List<Topology.Gpu> gpus = new ArrayList<>();
    final int[][] matrix = new int[count][count];
    final boolean[][] access = new boolean[count][count];
    for (int i = 0; i < count; i++) {
      gpus.add(new Topology.Gpu("GPU-" + i, "0000:0" + i + ":00.0", ""));
      for (int j = 0; j < count; j++) {
        matrix[i][j] = i == j ? 0 : links;
        access[i][j] = i == j || peers;
      }
    }
    return new Topology(gpus, matrix, access);
  }

  @Override
  public Gpu open(final int ordinal) {
    if (refusal != null && ordinal == count - 1) {
      throw new ZerohopException(Category.RETRY, refusal);
    }
    final HostDevice device = new HostDevice();
    opened.add(device);
    return new Gpu(device, "GPU-" + ordinal, "0000:0" + ordinal + ":00.0", "GPU " + ordinal, true);
  }

  /** Segments and streams that are open. */
  int held() {
    return opened.stream().mapToInt(HostDevice::openResources).sum();
  }
}
