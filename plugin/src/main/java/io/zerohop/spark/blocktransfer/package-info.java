/**
 * Spark's block transfer service: what serves blocks to it, and reads them by it. The last resort.
 */
package io.zerohop.spark.blocktransfer;
