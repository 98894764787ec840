/** The bytes of blocks: cudf's packed tables with a header of ours, and Kudo blocks of RAPIDS. */
package io.zerohop.spark.rapids.format;
