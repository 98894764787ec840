package io.zerohop.spark.blocktransfer.sent;

import org.apache.spark.storage.BlockManagerId;

/**
 * Where the executors of this application are, as its driver lists them: bytes go to no other
 * place, whoever asks for them. Thread safe.
 */
@FunctionalInterface
public interface Neighbours {

  /** The block manager of an executor, asked of the driver now; null if it lists none. */
  BlockManagerId find(String executorId);
}
