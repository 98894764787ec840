package io.zerohop.shuffle.transport;

import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.extent.ExtentInputStream;
import io.zerohop.shuffle.extent.ExtentList;
import io.zerohop.shuffle.transport.Transport.Payload;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.concurrent.atomic.AtomicInteger;

/** One payload that several sinks own: released when the last of its shares is. Thread safe. */
final class SharedPayload {
  private final Payload payload;
  private final AtomicInteger shares;

  /**
   * @param payload owned from now on; each of its streams has a position of its own
   * @param shares how many of them will be made, at least one
   */
  SharedPayload(final Payload payload, final int shares) {
    this.payload = payload;
    this.shares = new AtomicInteger(shares);
  }

  /** One owner's share. */
  Payload share() {
    return new Share();
  }

  /** Its streams end with it, though the memory may stay for others, or be given to them. */
  private final class Share implements Payload {
    private volatile boolean released;

    @Override
    public long bytes() {
      return payload.bytes();
    }

    @Override
    public ExtentList extents() {
      return payload.extents();
    }

    @Override
    public Path path(final Path asked) {
      return payload.path(asked);
    }

    @Override
    public synchronized InputStream open() throws IOException {
      checkHeld();
      final ExtentList extents = payload.extents();
      return extents == null
          ? new ShareStream(this, payload.open())
          : new ExtentInputStream(extents, 0, extents.size(), () -> !released);
    }

    private void checkHeld() throws IOException {
      if (released) {
        throw new IOException("a block is read after it was released");
      }
    }

    /** Idempotent: one that a sink has refused may still be released by it. */
    @Override
    public void release() {
      synchronized (this) {
        if (released) {
          return;
        }
        released = true;
      }
      if (shares.decrementAndGet() == 0) {
        payload.release();
      }
    }
  }

  /** Reads under the share's monitor, so that the memory is not given back meanwhile. */
  private static final class ShareStream extends FilterInputStream {
    private final Share share;

    ShareStream(final Share share, final InputStream in) {
      super(in);
      this.share = share;
    }

    @Override
    public int read() throws IOException {
      synchronized (share) {
        share.checkHeld();
        return in.read();
      }
    }

    @Override
    public int read(final byte[] bytes, final int offset, final int length) throws IOException {
      synchronized (share) {
        share.checkHeld();
        return in.read(bytes, offset, length);
      }
    }

    @Override
    public long skip(final long count) throws IOException {
      synchronized (share) {
        share.checkHeld();
        return in.skip(count);
      }
    }

    @Override
    public int available() throws IOException {
      synchronized (share) {
        share.checkHeld();
        return in.available();
      }
    }

    @Override
    public boolean markSupported() {
      return false;
    }
  }
}
