/*
 * What NVML knows of the links between GPUs. The library is found at run time.
 *
 * Types and values are those of the NVML API reference, "NvLink Methods" and "Device Queries";
 * they are repeated here because nobody should need a CUDA toolkit to build this.
 */
#include "zerohop.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define ZH_NVML(type, method) \
  JNIEXPORT type JNICALL Java_io_zerohop_device_cuda_TopologyReader_00024Nvml_##method

enum { ZH_UUID_BYTES = 96, ZH_NONE = -1, ZH_FABRIC_COMPLETED = 3 };

typedef struct zh_device *zh_device;

struct zh_pci {
  char bus_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device;
  unsigned pci_subsystem;
  char bus_id[32];
};

struct zh_fabric {
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
};

/* The same as newer drivers have it, which need not have the older call. */
struct zh_fabric_v2 {
  unsigned version;
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
  unsigned health;
};

static struct {
  int (*init)(void);
  int (*count)(unsigned *);
  int (*by_index)(unsigned, zh_device *);
  int (*uuid)(zh_device, char *, unsigned);
  int (*pci)(zh_device, struct zh_pci *);
  int (*link_state)(zh_device, unsigned, unsigned *);
  int (*link_remote)(zh_device, unsigned, struct zh_pci *);
  int (*link_type)(zh_device, unsigned, int *);
  int (*p2p)(zh_device, zh_device, int, int *);
  int (*fabric)(zh_device, struct zh_fabric *);      /* newer drivers only */
  int (*fabric_v)(zh_device, struct zh_fabric_v2 *); /* still newer ones */
} nvml;

static int find(void *library, const char *name, void *target) {
  void *symbol = dlsym(library, name);
  memcpy(target, &symbol, sizeof symbol);
  return symbol != NULL;
}

/* Loads and initialises the library; the caller makes sure that this happens once. */
ZH_NVML(jboolean, open)(JNIEnv *env, jclass type, jstring path) {
  (void)type;
  const char *text = (*env)->GetStringUTFChars(env, path, NULL);
  if (text == NULL) {
    return JNI_FALSE;
  }
  void *library = dlopen(text, RTLD_NOW | RTLD_LOCAL);
  (*env)->ReleaseStringUTFChars(env, path, text);
  if (library == NULL) {
    return JNI_FALSE;
  }
  int found = find(library, "nvmlInit_v2", &nvml.init) &&
              find(library, "nvmlDeviceGetCount_v2", &nvml.count) &&
              find(library, "nvmlDeviceGetHandleByIndex_v2", &nvml.by_index) &&
              find(library, "nvmlDeviceGetUUID", &nvml.uuid) &&
              find(library, "nvmlDeviceGetPciInfo_v3", &nvml.pci) &&
              find(library, "nvmlDeviceGetNvLinkState", &nvml.link_state) &&
              find(library, "nvmlDeviceGetNvLinkRemotePciInfo_v2", &nvml.link_remote) &&
              find(library, "nvmlDeviceGetNvLinkRemoteDeviceType", &nvml.link_type) &&
              find(library, "nvmlDeviceGetP2PStatus", &nvml.p2p);
  (void)find(library, "nvmlDeviceGetGpuFabricInfo", &nvml.fabric);
  (void)find(library, "nvmlDeviceGetGpuFabricInfoV", &nvml.fabric_v);
  return found && nvml.init() == 0 ? JNI_TRUE : JNI_FALSE;
}

static zh_device device_of(jint index) {
  zh_device device = NULL;
  return nvml.by_index((unsigned)index, &device) == 0 ? device : NULL;
}

ZH_NVML(jint, count)(JNIEnv *env, jclass type) {
  (void)env;
  (void)type;
  unsigned count = 0;
  return nvml.count(&count) == 0 ? (jint)count : 0;
}

ZH_NVML(jstring, uuid)(JNIEnv *env, jclass type, jint index) {
  (void)type;
  char uuid[ZH_UUID_BYTES] = "";
  zh_device device = device_of(index);
  if (device == NULL || nvml.uuid(device, uuid, sizeof uuid) != 0) {
    return NULL;
  }
  return (*env)->NewStringUTF(env, uuid);
}

ZH_NVML(jstring, busId)(JNIEnv *env, jclass type, jint index) {
  (void)type;
  struct zh_pci pci;
  memset(&pci, 0, sizeof pci);
  zh_device device = device_of(index);
  if (device == NULL || nvml.pci(device, &pci) != 0) {
    return NULL;
  }
  return (*env)->NewStringUTF(env, pci.bus_id);
}

/* What is at the other end of a link: NVML's device type, or -1 where there is no active link. */
ZH_NVML(jint, linkType)(JNIEnv *env, jclass type, jint index, jint link) {
  (void)env;
  (void)type;
  unsigned active = 0;
  int remote = ZH_NONE;
  zh_device device = device_of(index);
  if (device == NULL || nvml.link_state(device, (unsigned)link, &active) != 0 || active == 0 ||
      nvml.link_type(device, (unsigned)link, &remote) != 0) {
    return ZH_NONE;
  }
  return remote;
}

ZH_NVML(jstring, linkBusId)(JNIEnv *env, jclass type, jint index, jint link) {
  (void)type;
  struct zh_pci pci;
  memset(&pci, 0, sizeof pci);
  zh_device device = device_of(index);
  if (device == NULL || nvml.link_remote(device, (unsigned)link, &pci) != 0) {
    return NULL;
  }
  return (*env)->NewStringUTF(env, pci.bus_id);
}

/* NVML's status for reads of one GPU by another; 0 is that they work. */
ZH_NVML(jint, peerStatus)(JNIEnv *env, jclass type, jint from, jint to) {
  (void)env;
  (void)type;
  zh_device one = device_of(from);
  zh_device other = device_of(to);
  int status = ZH_NONE;
  if (one == NULL || other == NULL || nvml.p2p(one, other, 0, &status) != 0) {
    return ZH_NONE;
  }
  return status;
}

static int fabric_of(zh_device device, struct zh_fabric *fabric) {
  memset(fabric, 0, sizeof *fabric);
  struct zh_fabric_v2 newer;
  memset(&newer, 0, sizeof newer);
  newer.version = (unsigned)sizeof newer | 2u << 24;
  if (nvml.fabric_v != NULL && nvml.fabric_v(device, &newer) == 0) {
    memcpy(fabric->cluster, newer.cluster, sizeof fabric->cluster);
    fabric->status = newer.status;
    fabric->clique = newer.clique;
    fabric->state = newer.state;
    return 1;
  }
  return nvml.fabric != NULL && nvml.fabric(device, fabric) == 0;
}

/* Cluster and clique of a GPU that is part of a multi-node NVLink fabric; null if it is not. */
ZH_NVML(jstring, fabric)(JNIEnv *env, jclass type, jint index) {
  (void)type;
  struct zh_fabric fabric;
  zh_device device = device_of(index);
  if (device == NULL || !fabric_of(device, &fabric) || fabric.state != ZH_FABRIC_COMPLETED ||
      fabric.status != 0) {
    return NULL;
  }
  char text[64];
  int at = 0;
  int known = 0;
  for (size_t i = 0; i < sizeof fabric.cluster; i++) {
    at += snprintf(text + at, sizeof text - (size_t)at, "%02x", fabric.cluster[i]);
    known |= fabric.cluster[i];
  }
  snprintf(text + at, sizeof text - (size_t)at, "/%u", fabric.clique);
  return known ? (*env)->NewStringUTF(env, text) : NULL;
}
