/** Memory that can be exported, cut into regions and reclaimed after the last reader. */
package io.zerohop.shuffle.pool;
