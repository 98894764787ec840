/** The facade: a {@link ShuffleNode} holds blocks of an executor and fetches those of others. */
package io.zerohop.shuffle;
