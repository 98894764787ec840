package io.zerohop.shuffle.transport.ucx.connect;

import io.zerohop.device.LogCode;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.ucx.engine.RdmaDevices;
import java.util.Locale;

/** Decides whether blocks in a peer's GPU memory are read into this GPU's memory, and why not. */
enum GpuReach {
  /** This executor has no GPU. */
  NO_GPU(null, ""),
  /** They are. */
  DIRECT(null, ""),
  /** UCX reaches no GPU memory here. */
  NOT_HERE(
      ShuffleCode.GPU_NOT_HERE,
      "this node's UCX does not reach it (libucx without CUDA, or jucx before 1.16)"),
  /** An adapter's writes to this GPU's memory cannot be waited for. */
  NOT_ORDERED(
      ShuffleCode.GPU_NOT_ORDERED,
      "the driver orders no adapter's writes to this GPU's memory, and cannot flush them"),
  /** Nothing of this GPU's memory could be had to try it. */
  NO_ROOM(ShuffleCode.GPU_NO_ROOM, "no 16 MiB of this GPU's memory were free for a test"),
  /** UCX refused it. */
  NOT_REGISTERED(
      ShuffleCode.GPU_NOT_REGISTERED,
      "UCX cannot register this GPU's memory (UCX_LOG_LEVEL=info says why)"),
  /** UCX reaches no GPU memory there. */
  NOT_THERE(
      ShuffleCode.GPU_NOT_THERE,
      "the other node has no GPU memory that UCX reaches (libucx without CUDA?)"),
  /** A get from this peer failed, now or when it was connected before, or from all others. */
  FAILED(
      ShuffleCode.GPU_FAILED_BEFORE,
      "a test read of it failed (see the log); it is not tried again"),
  /** Gets are possible, but the owner's UCX does the work, or may do so. */
  EMULATED(ShuffleCode.GPU_EMULATED, "gets of it are emulated");

  private final LogCode code;
  private final String reason;

  GpuReach(final LogCode code, final String reason) {
    this.code = code;
    this.reason = reason;
  }

  /** One part of a line for the log. */
  String describe(final GetKind gets, final double rate) {
    return switch (this) {
      case DIRECT -> String.format(Locale.ROOT, "%s, %.1f GB/s", gets.words(), rate / 1e9);
      case EMULATED -> code.says("sent, since " + reason + " (" + wanted() + ")").text();
      default -> code.says("sent, since " + reason).text();
    };
  }

  private static String wanted() {
    return "over NVLink they need libucx 1.22 or later; over an adapter nvidia-peermem, which is "
        + (RdmaDevices.peermem() ? "" : "not ")
        + "loaded here, or dma-buf";
  }
}
