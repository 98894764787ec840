/**
 * Blocks of executors on other nodes, by UCX: one-sided gets from the owner's registered memory, or
 * messages as {@link io.zerohop.shuffle.transport.remote} has them where gets would be emulated.
 * What is where is asked by way of a {@link io.zerohop.shuffle.transport.ControlChannel}. See
 * docs/rdma.md.
 */
package io.zerohop.shuffle.transport.ucx;
