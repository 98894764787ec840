/** What a way to an owner's blocks has to do. The ways themselves are the packages below. */
package io.zerohop.shuffle.transport;
