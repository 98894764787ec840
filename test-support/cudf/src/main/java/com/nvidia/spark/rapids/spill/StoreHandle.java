package com.nvidia.spark.rapids.spill;

import scala.Option;

/** As RAPIDS'. */
public interface StoreHandle extends AutoCloseable {
  long approxSizeInBytes();

  Option<Object> taskId();

  long taskPriority();

  @Override
  void close();
}
