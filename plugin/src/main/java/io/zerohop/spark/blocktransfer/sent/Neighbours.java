package io.zerohop.spark.blocktransfer.sent;

import java.util.Collection;
import org.apache.spark.storage.BlockManagerId;

/**
 * The addresses of this application's executors, as its driver lists them. Bytes go to no other
 * address, regardless of the request. Thread safe.
 */
@FunctionalInterface
public interface Neighbours {

  /** The block managers of the other executors, asked of the driver now. */
  Collection<BlockManagerId> list();
}
