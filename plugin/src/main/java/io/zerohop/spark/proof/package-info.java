/**
 * The proof kit for RDMA: two hosts read each other's memory by the product's own UCX code, while
 * owners are stopped and killed. A report has the results.
 */
package io.zerohop.spark.proof;
