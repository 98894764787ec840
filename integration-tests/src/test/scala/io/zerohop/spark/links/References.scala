package io.zerohop.spark.links

import scala.collection.mutable

import org.objectweb.asm.{
  ClassReader, ClassVisitor, ConstantDynamic, FieldVisitor, Handle, Label, MethodVisitor, Opcodes,
  RecordComponentVisitor, Type
}

/** Something outside its own class that a class needs at run time. */
sealed trait Reference

object Reference {
  final case class ToClass(name: String) extends Reference
  final case class ToMethod(owner: String, name: String, descriptor: String, isStatic: Boolean)
      extends Reference
  final case class ToField(owner: String, name: String, descriptor: String, isStatic: Boolean)
      extends Reference

  /** A lambda: the interface must have this one abstract method and no other. */
  final case class ToLambda(interface: String, method: String, descriptor: String)
      extends Reference
}

/** Every reference in the bytecode of one class. */
object References {
  import Reference._

  def of(bytes: Array[Byte]): Set[Reference] = {
    val collector = new Collector
    new ClassReader(bytes).accept(collector, ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES)
    collector.found.toSet
  }

  private final class Collector extends ClassVisitor(Opcodes.ASM9) {
    val found: mutable.Set[Reference] = mutable.Set.empty

    def addName(name: String): Unit =
      if (name != null) addType(Type.getObjectType(name))

    def addType(kind: Type): Unit = kind.getSort match {
      case Type.ARRAY => addType(kind.getElementType)
      case Type.OBJECT => found += ToClass(kind.getInternalName)
      case Type.METHOD =>
        kind.getArgumentTypes.foreach(addType)
        addType(kind.getReturnType)
      case _ =>
    }

    def addHandle(handle: Handle): Unit = {
      addName(handle.getOwner)
      val isField = handle.getTag <= Opcodes.H_PUTSTATIC
      found += (
        if (isField) {
          val isStatic = Set(Opcodes.H_GETSTATIC, Opcodes.H_PUTSTATIC)(handle.getTag)
          ToField(handle.getOwner, handle.getName, handle.getDesc, isStatic)
        } else {
          val isStatic = handle.getTag == Opcodes.H_INVOKESTATIC
          ToMethod(handle.getOwner, handle.getName, handle.getDesc, isStatic)
        }
      )
    }

    def addConstant(value: Any): Unit = value match {
      case kind: Type => addType(kind)
      case handle: Handle => addHandle(handle)
      case dynamic: ConstantDynamic =>
        addType(Type.getType(dynamic.getDescriptor))
        addHandle(dynamic.getBootstrapMethod)
        (0 until dynamic.getBootstrapMethodArgumentCount)
          .foreach(i => addConstant(dynamic.getBootstrapMethodArgument(i)))
      case _ =>
    }

    override def visit(
        version: Int,
        access: Int,
        name: String,
        signature: String,
        superName: String,
        interfaces: Array[String]): Unit = {
      addName(superName)
      interfaces.foreach(addName)
    }

    override def visitField(
        access: Int,
        name: String,
        descriptor: String,
        signature: String,
        value: Any): FieldVisitor = {
      addType(Type.getType(descriptor))
      null
    }

    override def visitRecordComponent(
        name: String,
        descriptor: String,
        signature: String): RecordComponentVisitor = {
      addType(Type.getType(descriptor))
      null
    }

    override def visitMethod(
        access: Int,
        name: String,
        descriptor: String,
        signature: String,
        exceptions: Array[String]): MethodVisitor = {
      addType(Type.getMethodType(descriptor))
      Option(exceptions).toSeq.flatten.foreach(addName)
      new CodeCollector(this)
    }
  }

  private final class CodeCollector(to: Collector) extends MethodVisitor(Opcodes.ASM9) {
    override def visitTypeInsn(opcode: Int, kind: String): Unit = to.addName(kind)

    override def visitMultiANewArrayInsn(descriptor: String, dimensions: Int): Unit =
      to.addType(Type.getType(descriptor))

    override def visitTryCatchBlock(start: Label, end: Label, handler: Label, kind: String): Unit =
      to.addName(kind)

    override def visitLdcInsn(value: Any): Unit = to.addConstant(value)

    override def visitFieldInsn(
        opcode: Int,
        owner: String,
        name: String,
        descriptor: String): Unit = {
      to.addName(owner)
      val isStatic = opcode == Opcodes.GETSTATIC || opcode == Opcodes.PUTSTATIC
      to.found += ToField(owner, name, descriptor, isStatic)
    }

    override def visitMethodInsn(
        opcode: Int,
        owner: String,
        name: String,
        descriptor: String,
        isInterface: Boolean): Unit = {
      to.addName(owner)
      to.addType(Type.getMethodType(descriptor))
      if (!owner.startsWith("[")) {
        to.found += ToMethod(owner, name, descriptor, opcode == Opcodes.INVOKESTATIC)
      }
    }

    override def visitInvokeDynamicInsn(
        name: String,
        descriptor: String,
        bootstrap: Handle,
        arguments: AnyRef*): Unit = {
      to.addType(Type.getMethodType(descriptor))
      to.addHandle(bootstrap)
      arguments.foreach(to.addConstant)
      if (bootstrap.getOwner == "java/lang/invoke/LambdaMetafactory") {
        val interface = Type.getReturnType(descriptor).getInternalName
        to.found += ToLambda(interface, name, arguments.head.asInstanceOf[Type].getDescriptor)
      }
    }
  }
}
