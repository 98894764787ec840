package io.zerohop.spark.blocktransfer.sent;

import java.util.Collection;
import org.apache.spark.storage.BlockManagerId;

/**
 * Where the executors of this application are, as its driver lists them: bytes go to no other
 * place, whoever asks for them. Thread safe.
 */
@FunctionalInterface
public interface Neighbours {

  /** The block managers of the other executors, asked of the driver now. */
  Collection<BlockManagerId> list();
}
