/** Memory of this executor and of its node's other executors, read in place. */
package io.zerohop.shuffle.transport.mapped;
