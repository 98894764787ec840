/**
 * GPU memory as a {@link io.zerohop.device.Device}: segments that peers map, copies by one kernel
 * launch, signal words that live on the GPU. Needs a driver, no toolkit; where there is no driver
 * {@link io.zerohop.device.cuda.CudaDriver} says so and nothing else of this package works.
 */
package io.zerohop.device.cuda;
