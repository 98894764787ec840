/** From batches of a map task to a map output. */
package io.zerohop.spark.rapids.write;
