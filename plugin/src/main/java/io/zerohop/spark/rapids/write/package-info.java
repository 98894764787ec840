/** From batches of a map task to a map output, and what its map status says of their sizes. */
package io.zerohop.spark.rapids.write;
