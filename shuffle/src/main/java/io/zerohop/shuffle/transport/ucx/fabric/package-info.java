/** GPU memory of owners on other nodes, read over an NVLink fabric; docs/fabric.md. */
package io.zerohop.shuffle.transport.ucx.fabric;
