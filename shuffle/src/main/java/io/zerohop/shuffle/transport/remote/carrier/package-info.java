/** What carries bytes from one executor to another, as the rest sees it. */
package io.zerohop.shuffle.transport.remote.carrier;
