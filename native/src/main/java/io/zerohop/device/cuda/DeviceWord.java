package io.zerohop.device.cuda;

/** A signal word that kernels reach. */
interface DeviceWord {

  /** Where the word lies for the GPU. */
  long address();
}
