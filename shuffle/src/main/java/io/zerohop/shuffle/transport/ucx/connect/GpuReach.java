package io.zerohop.shuffle.transport.ucx.connect;

import io.zerohop.shuffle.transport.ucx.engine.RdmaDevices;

/** How blocks in a peer's GPU memory come to this GPU, and why not better. */
enum GpuReach {
  /** This executor has no GPU. */
  NO_GPU(""),
  /** By gets from GPU to GPU. */
  DIRECT(""),
  /** UCX reaches no GPU memory here. */
  NOT_HERE("this node's UCX does not reach it (libucx without CUDA, or jucx before 1.16)"),
  /** Nothing of this GPU's memory could be had to try it. */
  NO_ROOM("there was not 1 MiB of this GPU's memory to try it"),
  /** UCX refused it. */
  NOT_REGISTERED("UCX cannot register this GPU's memory (UCX_LOG_LEVEL=info says why)"),
  /** UCX reaches no GPU memory there. */
  NOT_THERE("the other node has no GPU memory that UCX reaches (libucx without CUDA?)"),
  /** A get from this peer failed, now or when it was connected before, or from all others. */
  FAILED("a test read of it failed, which the log has; it is not tried again"),
  /** Gets are possible, but the owner's UCX does the work. */
  EMULATED("gets of it are emulated"),
  /** Gets are possible, but slower than over the host. */
  SLOW("gets of it are slower"),
  /** The user wants messages. */
  FORBIDDEN("spark.zerohop.ucx.mode=message");

  private final String reason;

  GpuReach(final String reason) {
    this.reason = reason;
  }

  /** One part of a line for the log. */
  String describe(final GetKind gets, final double rate) {
    return switch (this) {
      case DIRECT -> String.format("%s, %.1f GB/s", gets.words(), rate / 1e9);
      case EMULATED -> overHost() + String.format(" and have %.1f GB/s (%s)", rate / 1e9, wanted());
      case SLOW -> overHost() + String.format(": %.1f GB/s", rate / 1e9);
      default -> overHost();
    };
  }

  private String overHost() {
    return "over pinned host memory at both ends, since " + reason;
  }

  private static String wanted() {
    return "over NVLink they want libucx 1.22 or later; over an adapter nvidia-peermem, which is "
        + (RdmaDevices.peermem() ? "" : "not ")
        + "loaded here, or dma-buf";
  }
}
