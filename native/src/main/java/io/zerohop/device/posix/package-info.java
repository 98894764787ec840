/**
 * The system calls that Java lacks, one static method each: a flat C ABI behind {@link
 * io.zerohop.device.posix.NativeLibrary}. Descriptors and addresses are plain numbers here; the
 * packages above give them owners. Beside them, what threads and waits everywhere are made of.
 */
package io.zerohop.device.posix;
