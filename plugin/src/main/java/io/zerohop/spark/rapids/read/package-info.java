/** From blocks of a reduce task to batches on the GPU. */
package io.zerohop.spark.rapids.read;
