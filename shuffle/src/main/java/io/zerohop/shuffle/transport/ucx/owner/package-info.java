/** The owner's side: what readers need to get from its memory. */
package io.zerohop.shuffle.transport.ucx.owner;
