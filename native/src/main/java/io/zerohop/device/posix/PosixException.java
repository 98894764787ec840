package io.zerohop.device.posix;

import io.zerohop.device.ZerohopException;

/** A system call failed; thrown by the native library with the call's name and its errno. */
public final class PosixException extends ZerohopException {
  private static final long serialVersionUID = 1L;

  public static final int ENOENT = 2;
  public static final int EAGAIN = 11;
  public static final int ENOMEM = 12;
  public static final int EACCES = 13;
  public static final int EEXIST = 17;
  public static final int ENOTDIR = 20;
  public static final int ENFILE = 23;
  public static final int EMFILE = 24;
  public static final int ENOSPC = 28;
  public static final int ELOOP = 40;
  public static final int ECONNREFUSED = 111;

  private final String call;
  private final int errno;

  /** Called from C. */
  public PosixException(final String call, final int errno, final String text) {
    super(Category.FALLBACK, call + ": " + text + " (errno " + errno + ")");
    this.call = call;
    this.errno = errno;
  }

  /** Name of the system call that failed. */
  public String call() {
    return call;
  }

  /** The error number, as in {@code errno(3)}. */
  public int errno() {
    return errno;
  }
}
