/** Host memory that bytes of other executors are received in, and sent from. */
package io.zerohop.shuffle.transport.remote.memory;
