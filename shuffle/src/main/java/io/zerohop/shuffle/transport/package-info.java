/** The ways to an owner's blocks, the peers and what is mapped of their memory. */
package io.zerohop.shuffle.transport;
