/** The owner's side: holds blocks for readers elsewhere, and sends what they ask for. */
package io.zerohop.shuffle.transport.remote.owner;
