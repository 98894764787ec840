/** Memory that UCX reads for peers, and that bytes of other nodes land in. */
package io.zerohop.shuffle.transport.ucx.memory;
