/** The reader's side: blocks on their way from one owner, by gets or by messages. */
package io.zerohop.shuffle.transport.ucx.reader;
