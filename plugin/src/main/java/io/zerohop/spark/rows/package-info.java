/** Rows of any Spark job as blocks in shared host memory. */
package io.zerohop.spark.rows;
