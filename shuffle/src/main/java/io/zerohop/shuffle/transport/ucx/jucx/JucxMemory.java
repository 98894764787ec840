package io.zerohop.shuffle.transport.ucx.jucx;

import io.zerohop.shuffle.transport.ucx.engine.UcxMemory;
import java.nio.ByteBuffer;
import java.util.function.Consumer;
import org.openucx.jucx.UcxCallback;
import org.openucx.jucx.ucp.UcpEndpoint;
import org.openucx.jucx.ucp.UcpMemory;
import org.openucx.jucx.ucp.UcpRemoteKey;
import org.openucx.jucx.ucp.UcpRequestParams;

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

  /** Gets into this memory. UCX takes it for host memory unless each request says what it is. */
  void get(
      final UcpEndpoint from,
      final UcpRemoteKey key,
      final long remoteAddress,
      final long localAddress,
      final long bytes,
      final UcxCallback request) {
    from.getNonBlocking(
        remoteAddress,
        key,
        localAddress,
        bytes,
        request,
        new UcpRequestParams().setMemoryHandle(memory).setMemoryType(JucxEngine.GPU));
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
