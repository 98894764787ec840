package io.zerohop.spark.rapids;

import com.nvidia.spark.rapids.GpuSemaphore$;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;
import org.apache.spark.TaskContext;
import org.apache.spark.TaskContextImpl;
import org.apache.spark.executor.TaskMetrics;
import scala.Option;
import scala.collection.immutable.Map$;
import scala.runtime.AbstractFunction0;

/** A task of Spark's, for its listeners and its metrics. */
final class TestTask {
  private static final AtomicLong ATTEMPTS = new AtomicLong();

  private final TaskContextImpl context =
      new TaskContextImpl(
          0,
          0,
          0,
          ATTEMPTS.incrementAndGet(),
          0,
          1,
          null,
          new Properties(),
          null,
          TaskMetrics.empty(),
          1,
          Map$.MODULE$.empty());

  TaskContextImpl context() {
    return context;
  }

  /** Asks it to stop, as Spark does with tasks that are killed. */
  void kill() {
    context.markInterrupted("killed by a test");
  }

  /** Runs it, and ends it as Spark does, whether it fails or not. */
  <T> T run(final Supplier<T> body) {
    try {
      return TaskContext.withTaskContext(
          context,
          new AbstractFunction0<T>() {
            @Override
            public T apply() {
              return body.get();
            }
          });
    } catch (final Throwable e) {
      context.markTaskFailed(e);
      try {
        context.markTaskCompleted(Option.apply(e));
      } catch (final Throwable atEnd) {
        e.addSuppressed(atEnd);
      }
      throw e;
    } finally {
      context.markTaskCompleted(Option.empty()); // Nothing if it was before.
      GpuSemaphore$.MODULE$.releaseIfNecessary(context);
    }
  }
}
