/** The reader's side: blocks got from one owner, or copied over a fabric. */
package io.zerohop.shuffle.transport.ucx.reader;
