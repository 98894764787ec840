/**
 * The proof kit for RDMA: two hosts read each other's memory by the product's own UCX code, while
 * owners are stopped and killed, and a report says what was seen.
 */
package io.zerohop.spark.proof;
