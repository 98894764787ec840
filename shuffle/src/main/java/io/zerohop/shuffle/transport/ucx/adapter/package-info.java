/**
 * The RDMA adapters of this node, how far each is from a GPU, and which of them an executor uses.
 * Reads sysfs and nothing of UCX.
 */
package io.zerohop.shuffle.transport.ucx.adapter;
