/** RAPIDS' columnar batches as blocks: the ends that Spark's shuffle manager asks for. */
package io.zerohop.spark.rapids;
