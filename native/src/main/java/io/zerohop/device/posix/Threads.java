package io.zerohop.device.posix;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import java.time.Duration;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Threads that say in an exception that the system has none left. Java says it by an {@link
 * OutOfMemoryError}, for which Spark ends the executor; but whoever needs the thread can do without
 * it, or go another way.
 */
public final class Threads {
  private Threads() {}

  /**
   * A daemon thread, not started yet. Its context class loader is this class's own: whoever makes
   * it may be a task, whose class loader must not live as long.
   *
   * @return its {@code start} throws a ZerohopException (FALLBACK) if the system has no thread left
   */
  public static Thread daemon(final Runnable work, final String name) {
    final Thread thread = new LimitedThread(work, name);
    thread.setDaemon(true);
    thread.setContextClassLoader(Threads.class.getClassLoader());
    return thread;
  }

  /** The same with the caller's context class loader, for work that finds what the caller would. */
  public static Thread daemonOfCaller(final Runnable work, final String name) {
    final Thread thread = daemon(work, name);
    thread.setContextClassLoader(Thread.currentThread().getContextClassLoader());
    return thread;
  }

  /**
   * A pool of daemon threads that come with the work and go when idle for some time; the caller's.
   * If the system has no thread left, its {@code execute} throws a ZerohopException (FALLBACK).
   *
   * @param name of each thread, after {@code zerohop-}
   * @param threads that there are at most: more work waits
   */
  public static ThreadPoolExecutor pool(final String name, final int threads, final Duration idle) {
    final ThreadPoolExecutor pool =
        new ThreadPoolExecutor(
            threads,
            threads,
            idle.toNanos(),
            TimeUnit.NANOSECONDS,
            new LinkedBlockingQueue<>(),
            work -> daemon(work, "zerohop-" + name));
    pool.allowCoreThreadTimeOut(true);
    return pool;
  }

  private static final class LimitedThread extends Thread {
    LimitedThread(final Runnable work, final String name) {
      super(work, name);
    }

    @Override
    public synchronized void start() {
      try {
        super.start();
      } catch (final OutOfMemoryError e) {
        throw new ZerohopException(
            Category.FALLBACK,
            Message.of("cannot start a thread, since this user or container has reached its limit")
                .at("thread " + getName())
                .because(String.valueOf(e.getMessage()))
                .remedy("raise 'ulimit -u', or pids.max of the container"),
            e);
      }
    }
  }
}
