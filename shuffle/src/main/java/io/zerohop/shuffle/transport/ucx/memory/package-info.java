/** Memory that UCX reads for peers, and GPU memory that it receives in. */
package io.zerohop.shuffle.transport.ucx.memory;
