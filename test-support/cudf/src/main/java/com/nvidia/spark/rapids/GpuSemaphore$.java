package com.nvidia.spark.rapids;

import java.util.Collections;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.spark.TaskContext;

/** As RAPIDS': which tasks may use the GPU; here all that ask. Thread safe. */
public final class GpuSemaphore$ {
  public static final GpuSemaphore$ MODULE$ = new GpuSemaphore$();

  private final Set<TaskContext> holders =
      Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

  private GpuSemaphore$() {}

  public void acquireIfNecessary(final TaskContext context) {
    holders.add(context);
  }

  public void releaseIfNecessary(final TaskContext context) {
    holders.remove(context);
  }

  /** Whether a task may use the GPU now. */
  public boolean isHeldBy(final TaskContext context) {
    return holders.contains(context);
  }
}
