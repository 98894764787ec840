/** What a block is, where its owner is, and which ways it can take. */
package io.zerohop.shuffle.block;
