/** Memory that UCX reads for peers, and that bytes of other nodes are received in. */
package io.zerohop.shuffle.transport.ucx.memory;
