/** What a shuffle block is, who holds it and how it is fetched; {@link ShuffleNode} is the door. */
package io.zerohop.shuffle;
