/** RAPIDS' columnar batches as blocks: packed tables that stay in GPU memory. */
package io.zerohop.spark.rapids;
