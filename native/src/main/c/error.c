#include "zerohop.h"

#include <string.h>

void zh_throw(JNIEnv *env, const char *call, int error) {
  if ((*env)->ExceptionCheck(env)) {
    return;
  }
  char buffer[128];
  const char *text = strerror_r(error, buffer, sizeof buffer);
  jclass type = (*env)->FindClass(env, "io/zerohop/device/posix/PosixException");
  if (type == NULL) {
    return;
  }
  jmethodID constructor =
      (*env)->GetMethodID(env, type, "<init>", "(Ljava/lang/String;ILjava/lang/String;)V");
  jstring name = (*env)->NewStringUTF(env, call);
  jstring reason = (*env)->NewStringUTF(env, text);
  if (constructor == NULL || name == NULL || reason == NULL) {
    return;
  }
  jobject failure = (*env)->NewObject(env, type, constructor, name, (jint)error, reason);
  if (failure != NULL) {
    (*env)->Throw(env, (jthrowable)failure);
  }
}
