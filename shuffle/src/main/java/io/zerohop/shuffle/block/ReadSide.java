package io.zerohop.shuffle.block;

/** The kind of reader of a fetch. */
public enum ReadSide {
  /** The host: blocks in GPU memory are brought to it first. */
  HOST,
  /** The GPU: extents in its memory or a peer GPU's are handed out as they are. */
  DEVICE
}
