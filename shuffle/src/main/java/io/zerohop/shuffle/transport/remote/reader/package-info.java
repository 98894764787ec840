/** The reader's side: blocks on their way from one owner. */
package io.zerohop.shuffle.transport.remote.reader;
