/** The choice of a path for an owner's blocks: in place, over NVLink, by UCX, or staged. */
package io.zerohop.shuffle.fetch.route;
