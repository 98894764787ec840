package io.zerohop.shuffle.transport.ucx.jucx;

import io.zerohop.shuffle.transport.ucx.UcxMemory;
import java.nio.ByteBuffer;
import java.util.function.Consumer;
import org.openucx.jucx.ucp.UcpMemory;

/** Registered memory and its packed key. */
final class JucxMemory implements UcxMemory {
  private final UcpMemory memory;
  private final byte[] key;
  private final Consumer<JucxMemory> onClose;
  private boolean closed;

  /** Takes the registration over. */
  JucxMemory(final UcpMemory memory, final Consumer<JucxMemory> onClose) {
    this.memory = memory;
    this.onClose = onClose;
    byte[] packed = null;
    try {
      final ByteBuffer buffer = memory.getRemoteKeyBuffer();
      packed = new byte[buffer.remaining()];
      buffer.duplicate().get(packed);
    } finally {
      if (packed == null) {
        memory.deregister();
      }
    }
    this.key = packed;
  }

  @Override
  public byte[] key() {
    return key;
  }

  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      memory.deregister();
      onClose.accept(this);
    }
  }
}
