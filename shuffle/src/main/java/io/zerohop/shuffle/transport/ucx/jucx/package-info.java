/**
 * The one place that knows jucx. It may be loaded a second time, together with another jucx, by
 * {@link io.zerohop.shuffle.transport.ucx.engine.UcxLoader}: nothing else refers to it by name.
 */
package io.zerohop.shuffle.transport.ucx.jucx;
