/** GPU memory that RAPIDS gets back from the pool when it runs out of it. */
package io.zerohop.spark.rapids.pressure;
