/**
 * Blocks of executors on other nodes, by UCX: one-sided gets from the owner's registered memory,
 * under leases of {@link io.zerohop.shuffle.transport.remote}. What is where is asked by way of a
 * {@link io.zerohop.shuffle.transport.ControlChannel}. See docs/rdma.md.
 */
package io.zerohop.shuffle.transport.ucx;
