/** The GPU of tests without one, and tables on it. */
package io.zerohop.spark.rapids.gpu;
