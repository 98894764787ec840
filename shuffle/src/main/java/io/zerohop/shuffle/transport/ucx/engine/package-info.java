/**
 * UCX as the rest sees it: a worker, its endpoints and registered memory. Nothing of jucx is in it.
 */
package io.zerohop.shuffle.transport.ucx.engine;
