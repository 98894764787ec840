package io.zerohop.shuffle.transport.ucx.jucx;

import io.zerohop.shuffle.transport.remote.carrier.Arrivals;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.openucx.jucx.UcxUtils;
import org.openucx.jucx.ucp.UcpAmData;
import org.openucx.jucx.ucp.UcpAmRecvCallback;
import org.openucx.jucx.ucp.UcpEndpoint;
import org.openucx.jucx.ucs.UcsConstants;

/** Takes messages off a worker, to where the receiver wants them. */
final class JucxMessages implements UcpAmRecvCallback {
  /** The one kind of message that there is. */
  static final int ID = 7;

  /** Transfer and offset. */
  static final int HEADER_BYTES = 16;

  private final JucxWorker worker;
  private final Arrivals receiver;

  JucxMessages(final JucxWorker worker, final Arrivals receiver) {
    this.worker = worker;
    this.receiver = receiver;
  }

  @Override
  public int onReceive(
      final long headerAddress,
      final long headerBytes,
      final UcpAmData data,
      final UcpEndpoint replyTo) {
    if (headerBytes != HEADER_BYTES) {
      return UcsConstants.STATUS.UCS_OK; // Not ours: it is dropped.
    }
    final ByteBuffer header =
        UcxUtils.getByteBufferView(headerAddress, headerBytes).order(ByteOrder.LITTLE_ENDIAN);
    final long id = header.getLong(0);
    final long offset = header.getLong(8);
    final long bytes = data.getLength();
    final long to = receiver.arriving(id, offset, bytes);
    if (to == 0) {
      return UcsConstants.STATUS.UCS_OK;
    }
    worker.begun();
    final JucxRequest request =
        new JucxRequest(worker, failure -> receiver.arrived(id, offset, bytes, failure));
    if (data.isDataValid()) {
      org.agrona.UnsafeAccess.UNSAFE.copyMemory(data.getDataAddress(), to, bytes);
      request.onSuccess(null);
      return UcsConstants.STATUS.UCS_OK;
    }
    try {
      worker
          .worker()
          .recvAmDataNonBlocking(data.getDataHandle(), to, bytes, request, JucxEngine.HOST);
    } catch (final RuntimeException e) {
      request.onError(UcsConstants.STATUS.UCS_ERR_IO_ERROR, e.getMessage());
    }
    return UcsConstants.STATUS.UCS_INPROGRESS;
  }
}
