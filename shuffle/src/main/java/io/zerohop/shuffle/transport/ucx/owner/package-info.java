/**
 * The owner's side: holds blocks for readers on other nodes, and sends them where gets would be
 * emulated.
 */
package io.zerohop.shuffle.transport.ucx.owner;
