/**
 * What is decided before RAPIDS plans: whether its shuffles stay in GPU memory, and who splits
 * batches.
 */
package io.zerohop.spark.rapids.setup;
