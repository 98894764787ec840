/** What is called of the RAPIDS Accelerator and cudf beyond their plain classes. */
package io.zerohop.spark.rapids.api;
